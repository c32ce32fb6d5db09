//! The headline figures of the papers, published/headline.toml: a row for each entry. What is here
//! comes from the pages of the studies.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use toml::Value;

/// A page of a study, and how this one links to it.
#[derive(Clone, Copy)]
enum Page {
    Sampling,
    Prediction,
    Fidelity,
    Smt,
    Paths,
    Characterization,
}

impl Page {
    fn text(self) -> &'static str {
        match self {
            Self::Sampling => include_str!("../../../docs/lab/random-sampling.md"),
            Self::Prediction => include_str!("../../../docs/method/prediction.md"),
            Self::Fidelity => include_str!("../../../docs/lab/fidelity.md"),
            Self::Smt => include_str!("../../../docs/lab/smt-core.md"),
            Self::Paths => include_str!("../../../docs/lab/path-profiles.md"),
            Self::Characterization => include_str!("../../../docs/method/characterization.md"),
        }
    }

    fn link(self) -> &'static str {
        match self {
            Self::Sampling => "[page](random-sampling.md)",
            Self::Prediction => "[page](../method/prediction.md#measured)",
            Self::Fidelity => "below",
            Self::Smt => "[page](smt-core.md#the-paper-beside-the-model)",
            Self::Paths => "[page](path-profiles.md)",
            Self::Characterization => "[page](../method/characterization.md)",
        }
    }
}

/// What pinwise or a study has for an entry.
enum Here {
    /// The same value, in this place.
    Setting(&'static str),
    /// Numbers in a column of the first table after some words, of the rows that begin with one of
    /// these words; of all rows if there are none.
    Column(Page, &'static str, usize, &'static [&'static str]),
    /// Cells of a row that says itself whether it agrees: what is here, how, and that.
    Quoted(Page, &'static str, [usize; 3]),
    /// What is here and what follows.
    Words(Page, &'static str, &'static str),
}

/// When numbers reproduce the published ones. Shares are compared with percentages.
enum Rule {
    /// None is higher.
    AtMost,
    /// None is outside of their range.
    Inside,
    /// They are in the range of ours.
    Among,
    /// The highest is within a tenth.
    UpTo,
    /// All are zero.
    Zero,
    /// Within a twentieth.
    Near,
}

struct Entry {
    key: &'static str,
    here: Here,
    rule: Rule,
    how: &'static str,
    /// Why it is not reproduced, if it is not.
    reason: &'static str,
}

const FREE: &str = "free";

fn entries() -> Vec<Entry> {
    use Here::{Column, Quoted, Setting, Words};
    use Page::{Characterization, Fidelity, Paths, Prediction, Sampling, Smt};
    use Rule::{Among, AtMost, Inside, Near, UpTo, Zero};
    let set =
        |key, place| Entry { key, here: Setting(place), rule: Near, how: "published", reason: "" };
    let from = |key, here, rule, reason| Entry { key, here, rule, how: FREE, reason };
    let told = |key, here| Entry { key, here, rule: Near, how: FREE, reason: "" };
    let needs = "### Draws that a claim needs";
    let improvement = "### Estimated optimum";
    let (gains, six, many) = ("**Gains**", "**Six threads**", "**24 threads**");
    let beside = "| figure | paper | here";
    let kernels = "the same estimator gives other gaps on the model's tails";
    let spread = "placement matters more on the model with many threads, less with six";
    vec![
        set("optimal_assignment_evt.confidence", "`--confidence`"),
        set("optimal_assignment_evt.max_exceedance_fraction", "`evt`, mean excess"),
        set("optimal_assignment_evt.initial_sample", "`random_sampling`"),
        set("optimal_assignment_evt.step_sample", "`random_sampling`"),
        from(
            "optimal_assignment_evt.samples_needed_within_2_5_percent",
            Column(Sampling, needs, 2, &["2.5 %"]),
            Inside,
            kernels,
        ),
        from(
            "optimal_assignment_evt.samples_needed_within_10_percent_below",
            Column(Sampling, needs, 2, &["10 %"]),
            AtMost,
            kernels,
        ),
        from(
            "optimal_assignment_evt.possible_improvement_upper_1000",
            Column(Sampling, improvement, 3, &["1000"]),
            Inside,
            kernels,
        ),
        from(
            "optimal_assignment_evt.possible_improvement_upper_2000_below",
            Column(Sampling, improvement, 3, &["2000"]),
            AtMost,
            kernels,
        ),
        from(
            "optimal_assignment_evt.possible_improvement_upper_5000_below",
            Column(Sampling, improvement, 3, &["5000"]),
            AtMost,
            kernels,
        ),
        from(
            "optimal_assignment_evt.best_gain_from_1000_to_5000_below",
            Column(Sampling, "### The best of a sample", 5, &[]),
            AtMost,
            "a better assignment came late in four of five samples",
        ),
        told(
            "optimal_assignment_evt.seconds_per_assignment",
            Words(Sampling, "0.3 ms of the model's time", "out of reach: the traffic is modelled"),
        ),
        set("optimal_assignment_evt.two_instance_assignments", "`space --threads 6`, exact"),
        from(
            "optimal_assignment_evt.two_instance_loss_worst_vs_best",
            Column(Fidelity, "## Packet pipelines on", 2, &[]),
            Among,
            "",
        ),
        from("blackbox.loss_6_threads_below", Column(Prediction, six, 1, &[]), AtMost, ""),
        from("blackbox.loss_24_threads_top1_below", Column(Prediction, many, 3, &[]), AtMost, ""),
        from("blackbox.loss_24_threads_top5_below", Column(Prediction, many, 4, &[]), AtMost, ""),
        from(
            "blackbox.exact_best_6_threads",
            Column(Prediction, six, 1, &["hashN_L1", "hashN_L2", "hashN_Mem", "intdiv"]),
            Zero,
            "",
        ),
        from("blackbox.gain_over_balanced_mean", Column(Prediction, gains, 5, &[]), Inside, spread),
        from(
            "blackbox.gain_over_balanced_worst",
            Column(Prediction, gains, 6, &[]),
            UpTo,
            "nothing else runs on the model, so even balanced threads of few instances do well",
        ),
        from("blackbox.gain_over_naive_mean", Column(Prediction, gains, 3, &[]), Inside, spread),
        from("blackbox.gain_over_naive_worst", Column(Prediction, gains, 4, &[]), UpTo, spread),
        told("hardware_monitoring.model_r2", Quoted(Smt, "| R² of the model", [2, 3, 4])),
        set("hardware_monitoring.counters", "`smt_counters`"),
        set("hardware_monitoring.heuristic_weights", "`smt_counters`, one-number rank"),
        set("hardware_monitoring.pair_value_weights", "`smt_cosched`"),
        set("hardware_monitoring.run_queue_window", "`smt_cosched`, beside a window of three"),
        set("hardware_monitoring.saturating_counter_bits", "`smt_cosched`"),
        set("hardware_monitoring.fixed_tasks_at_most_fraction", "`smt_cosched`"),
        told(
            "hardware_monitoring.speedup_mean",
            Quoted(Smt, "| gain of the co-scheduler", [2, 3, 4]),
        ),
        told(
            "hardware_monitoring.speedup_range",
            Quoted(Smt, "| its worst and best set", [2, 3, 4]),
        ),
        set("hardware_monitoring.sets", "`smt_cosched`"),
        set("hardware_monitoring.applications_per_set", "`smt_cosched`"),
        set("hardware_monitoring.path_hot_threshold", "`path_profiles`"),
        from(
            "hardware_monitoring.path_accuracy_mean",
            Column(Paths, "| the paper says", 1, &["accuracy 80 % on average"]),
            Near,
            "other programs",
        ),
        from(
            "hardware_monitoring.path_accuracy_range",
            Column(Paths, "| the paper says", 1, &["accuracy of programs"]),
            Inside,
            "other programs: the paper's are not to be had",
        ),
        Entry {
            key: "hardware_monitoring.path_overhead_below_at_500k_cycles",
            here: Column(Paths, "| the paper says", 1, &["less than 10 %"]),
            rule: AtMost,
            how: "inferred from a fitted cost",
            reason: "",
        },
        set("hardware_monitoring.branch_buffer_taken_branches", "`paths --depth 4`"),
        set("sharing_levels.fame_maiv", "FAME of `select`"),
        set("sharing_levels.fame_repetitions_at_least", "FAME of `select`"),
        from(
            "sharing_levels.ipfwd_best_vs_worst",
            Column(Fidelity, beside, 2, &["6(a)"]),
            Inside,
            "the worst assignments lose less here. Of three and four instances, both samples give \
             lower limits",
        ),
        from(
            "sharing_levels.ipfwd_balanced_best_vs_worst_up_to",
            Column(Fidelity, beside, 2, &["7(a)"]),
            UpTo,
            "500 balanced ones are drawn here, a few were picked by hand in the paper",
        ),
        told(
            "sharing_levels.nine_tasks_all",
            Words(
                Characterization,
                "592573",
                "contradicted: the exact count is higher; the paper says *around*",
            ),
        ),
        told(
            "sharing_levels.nine_tasks_core_local",
            Words(
                Characterization,
                "6990",
                "contradicted: the paper does not say how it counted. Two readings were tried",
            ),
        ),
    ]
}

pub(crate) fn section(published: &Path) -> Result<String, Box<dyn Error>> {
    let path = published.join("headline.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let table: toml::Table = text.parse()?;
    let mut text = "## Headline figures\n\nA row for each entry of `headline.toml`. What is here \
        comes from the page named. *Reproduced* has\nthese rules. A limit: no value is higher. A \
        range: all values are inside. *Up to*: the highest is\nwithin a tenth. A number: within a \
        twentieth, or among the programs' values. *Setting*: the study\nuses the same value, so \
        it is no result. Published shares are beside percentages.\n\n| entry | published | here | \
        how | verdict |\n|---|---|---|---|---|\n"
        .to_owned();
    let mut entries = entries();
    for (paper, values) in &table {
        for (name, value) in values.as_table().into_iter().flatten() {
            let key = format!("{paper}.{name}");
            let place = entries.iter().position(|entry| entry.key == key);
            let place = place.ok_or_else(|| format!("headline.toml: {key} has no row here"))?;
            let entry = entries.swap_remove(place);
            let [here, how, verdict] = entry.judged(value)?;
            let printed = printed(value);
            writeln!(text, "| {key} | {printed} | {here} | {how} | {verdict} |")?;
        }
    }
    match entries.first() {
        Some(entry) => Err(format!("headline.toml has no {}", entry.key).into()),
        None => Ok(text),
    }
}

impl Entry {
    /// What is here, how it came about, and the verdict.
    fn judged(&self, published: &Value) -> Result<[String; 3], Box<dyn Error>> {
        let found = |page: Page, what: &str| format!("{}: {what} is missing", page.link());
        Ok(match &self.here {
            Here::Setting(place) => ["the same".into(), (*place).to_owned(), "setting".into()],
            Here::Words(page, here, verdict) => {
                [format!("{here}, {}", page.link()), self.how.to_owned(), (*verdict).to_owned()]
            }
            Here::Quoted(page, row, columns) => {
                let line = page.text().lines().find(|line| line.starts_with(row));
                let cells = cells(line.ok_or_else(|| found(*page, row))?);
                let [here, how, verdict] = columns.map(|column| cells[column].to_owned());
                [format!("{here}, {}", page.link()), how, verdict]
            }
            Here::Column(page, after, column, rows) => {
                // A study that takes long may not have been run since its page was written.
                let Some(values) = column_of(page.text(), after, *column, rows) else {
                    let here = format!("no figure, {}", page.link());
                    return Ok([here, self.how.to_owned(), "not run yet".into()]);
                };
                let reproduced = self.rule.holds(&values, &numbers_of(published));
                let verdict = match (reproduced, self.reason) {
                    (true, _) => "reproduced".to_owned(),
                    (false, "") => "not reproduced".to_owned(),
                    (false, reason) => format!("contradicted: {reason}"),
                };
                [format!("{}, {}", range(&values), page.link()), self.how.to_owned(), verdict]
            }
        })
    }
}

impl Rule {
    /// Published shares are compared with our percentages.
    fn holds(&self, ours: &[f64], published: &[f64]) -> bool {
        let share = published.iter().all(|value| value.abs() < 1.0);
        let published = published.iter().map(|value| if share { 100.0 * value } else { *value });
        let (low, high) = ends(&published.collect::<Vec<_>>());
        let (least, most) = ends(ours);
        match self {
            Self::AtMost => most <= high,
            Self::Inside => low <= least && most <= high,
            Self::Among => least <= low && high <= most,
            Self::UpTo => (most / high - 1.0).abs() <= 0.1,
            Self::Zero => most == 0.0,
            Self::Near => ours.iter().all(|value| (value / high - 1.0).abs() <= 0.05),
        }
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| {
        (low.min(*one), high.max(*one))
    })
}

fn range(values: &[f64]) -> String {
    let (least, most) = ends(values);
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// The numbers of the cells of a column; `None` if there is no such table.
fn column_of(text: &str, after: &str, column: usize, rows: &[&str]) -> Option<Vec<f64>> {
    let (_, rest) = text.split_once(after)?;
    let from = rest.find("\n|--").or_else(|| rest.find("|--"))?;
    let mut table = rest[from..].trim_start().lines().skip(1);
    let table = table.by_ref().take_while(|line| line.starts_with('|')).map(cells);
    let wanted = |cells: &Vec<&str>| {
        rows.is_empty() || rows.iter().any(|row| cells.iter().any(|cell| cell.starts_with(row)))
    };
    let numbers: Vec<f64> = table
        .filter(wanted)
        .filter_map(|cells| Some(numbers(cells.get(column)?)))
        .flatten()
        .collect();
    (!numbers.is_empty()).then_some(numbers)
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// The numbers of a cell: after a colon, before a parenthesis and what follows the first percent.
fn numbers(cell: &str) -> Vec<f64> {
    let cell = cell.rsplit(": ").next().unwrap_or(cell);
    let cell = cell.split(['(', '%']).next().unwrap_or(cell);
    let word = |word: &str| match word.trim_matches([',', '>', '<']) {
        "infinite" => Some(f64::INFINITY),
        word => word.parse().ok(),
    };
    let found: Vec<f64> = cell.split_whitespace().filter_map(word).collect();
    // More than what was tried.
    if cell.starts_with('>') { vec![f64::INFINITY] } else { found }
}

fn numbers_of(value: &Value) -> Vec<f64> {
    match value {
        Value::Integer(number) => vec![*number as f64],
        Value::Float(number) => vec![*number],
        Value::Array(values) => values.iter().flat_map(numbers_of).collect(),
        Value::Table(values) => values.values().flat_map(numbers_of).collect(),
        _ => Vec::new(),
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::Array(values) => values.iter().map(printed).collect::<Vec<_>>().join(", "),
        Value::Table(values) => {
            let each = values.iter().map(|(name, value)| format!("{name} {}", printed(value)));
            each.collect::<Vec<_>>().join(", ")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
