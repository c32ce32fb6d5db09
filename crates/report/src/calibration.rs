//! A calibration as a page: the thresholds, and the two lines that each characteristic gave.

use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::figure::{Figure, Table};
use crate::html_frame::{HtmlFrame, ReportError};
use askama::Template;
use pinwise_campaign::CampaignInfo;
use pinwise_jobs::CalibrationAnswer;
use pinwise_measure::Unit;
use pinwise_present::figures::{self, Scale};
use pinwise_present::{Files, NextStep, Unfinished, calibration_verdict};
use pinwise_threads::{Characteristic, Knee, Thresholds};

/// The page of a calibration: a complete HTML document that needs nothing else.
///
/// # Errors
/// The data could not be written, or the template not filled in.
pub fn calibration_page(
    answer: &CalibrationAnswer,
    files: Files<'_>,
) -> Result<String, ReportError> {
    let (id, flag) = (answer.campaign.id, files.flag());
    let show = format!("pinwise campaign show {}{flag}", id.0);
    let next = match answer.thresholds {
        Some(_) => NextStep {
            what: "write the thresholds as a file for threads --thresholds",
            command: format!("{show} > thresholds.toml"),
        },
        None => NextStep {
            what: "probe what is missing, and compute the thresholds",
            command: files.resume(id),
        },
    };
    let document = CalibrationDocument {
        info: &answer.campaign,
        verdict: calibration_verdict(answer.step, answer.contexts, answer.thresholds.is_some()),
        unfinished: answer.unfinished(files),
        thresholds: answer.thresholds.as_ref().map(thresholds),
        figures: Characteristic::ALL.map(|characteristic| figure(characteristic, answer)).into(),
        next: [next],
        version: env!("CARGO_PKG_VERSION"),
    };
    let charts: Vec<&Chart> =
        document.figures.iter().filter_map(|figure| figure.chart.as_ref()).collect();
    let title = format!("Thresholds, campaign {}", id.0);
    HtmlFrame::page(title, document.render()?, &charts)
}

/// What the page shows.
#[derive(Template)]
#[template(path = "calibration.html")]
struct CalibrationDocument<'a> {
    info: &'a CampaignInfo,
    verdict: String,
    unfinished: Option<Unfinished>,
    thresholds: Option<Table>,
    figures: Vec<Figure>,
    next: [NextStep; 1],
    version: &'static str,
}

/// The thresholds by the names that they have in a file.
fn thresholds(found: &Thresholds) -> Table {
    let Thresholds { lock, delta_lock, delta_vcx_rate, delta_migr_rate, delta_cpu_util } = *found;
    let values = [
        Characteristic::Lock.show(lock),
        Characteristic::Lock.show(delta_lock),
        Characteristic::VcxRate.show(delta_vcx_rate),
        Characteristic::MigrRate.show(delta_migr_rate),
        Characteristic::CpuUtil.show(delta_cpu_util),
    ];
    let mut table = Table::new(["Threshold", "High from"]);
    Thresholds::NAMES.into_iter().zip(values).for_each(|(name, value)| {
        table.row([name.to_owned(), value]);
    });
    table
}

/// How a characteristic is shown.
trait Shown: Sized {
    fn title(self) -> &'static str;
    fn chart(self) -> &'static str;
    fn unit(self) -> Unit;
    fn show(self, value: f64) -> String {
        Scale::new(&self.unit(), value).show(value)
    }
}

impl Shown for Characteristic {
    fn title(self) -> &'static str {
        match self {
            Self::Lock => "LOCK with each number of threads",
            Self::MigrRate => "MIGR_RATE with each number of threads",
            Self::VcxRate => "VCX_RATE with each number of threads",
            Self::CpuUtil => "CPU_UTIL with each number of threads",
        }
    }

    fn chart(self) -> &'static str {
        match self {
            Self::Lock => "chart-lock",
            Self::MigrRate => "chart-migr-rate",
            Self::VcxRate => "chart-vcx-rate",
            Self::CpuUtil => "chart-cpu-util",
        }
    }

    fn unit(self) -> Unit {
        Unit::rate(match self {
            Self::Lock | Self::CpuUtil => "%",
            Self::MigrRate | Self::VcxRate => "/s",
        })
    }
}

/// A characteristic of its example by the number of threads, and the two lines through it.
fn figure(characteristic: Characteristic, answer: &CalibrationAnswer) -> Figure {
    let title = characteristic.title();
    let example = characteristic.example();
    let probed = answer.examples.iter().find(|(shows, ..)| *shows == example);
    let points = probed.map(|(_, program, curve)| {
        (program.as_str(), characteristic.points(curve, answer.contexts))
    });
    let Some((program, points)) = points.filter(|(_, points)| !points.is_empty()) else {
        return Figure::absent(title, format!("The example for {example} is not probed yet."));
    };
    let knee = Knee::of(&points);
    let highest = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let scale = Scale::new(&characteristic.unit(), highest);
    let mut table = Table::new(["Threads", "Mean of its probes", "On the lines"]);
    for &(threads, value) in &points {
        let line = knee.map_or(String::new(), |knee| scale.show(knee.at(threads)));
        table.row([figures::count(threads as u64), scale.show(value), line]);
    }
    // One of the points is where the lines meet.
    let lines = knee
        .into_iter()
        .flat_map(|knee| points.iter().map(move |&(threads, _)| (threads, knee.at(threads))));
    let lines = lines.map(|(threads, value)| (threads, scale.value(value)));
    let means = points.iter().map(|&(threads, value)| (threads, scale.value(value)));
    let mut chart =
        Chart::new(characteristic.chart(), Axis::new("threads"), Axis::new(&scale.label))
            .series(Series::new("two lines", Shape::Line, Ink::Best, lines))
            .series(Series::new("mean of the probes", Shape::Dots, Ink::Data, means));
    if let Some(knee) = knee {
        chart = chart.mark("they meet", Ink::Best, knee.threads, None);
    }
    let says = match knee {
        Some(knee) => format!(
            "The example for {example} is {program}. The lines meet with {} threads at {}. A step \
             raises the value by {} on the mean of both.",
            figures::count(knee.threads as u64),
            characteristic.show(knee.value),
            characteristic.show(knee.delta(answer.step))
        ),
        None => format!(
            "The example for {example} is {program}. Two lines need four numbers of threads; {} \
             are probed.",
            points.len()
        ),
    };
    Figure {
        title,
        says,
        reading: "Each dot is the mean of the probes with a number of threads. The two lines are \
                  the best that meet at one of the numbers.",
        chart: Some(chart),
        table,
    }
}
