//! A chart with everything that is needed to understand it without seeing it. It has a title, what
//! it says, how to read it, and a table.

use crate::chart::{Chart, Ink, Shape};
use askama::Template;

/// Numbers in rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { head: head.map(column_head).to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }
}

/// The words with a capital letter first. A single letter is a symbol.
fn column_head(words: &str) -> String {
    let mut letters = words.chars();
    match (letters.next(), letters.as_str()) {
        (Some(first), rest) if !rest.is_empty() => first.to_uppercase().chain(letters).collect(),
        _ => words.to_owned(),
    }
}

/// One figure of the page.
#[derive(Debug, Template)]
#[template(path = "figure.html")]
pub(crate) struct Figure {
    pub(crate) title: &'static str,
    /// What it says, in numbers: all that somebody who cannot see the chart needs. Where there is
    /// no chart, why.
    pub(crate) says: String,
    /// How to read it, for readers who do not know this kind of chart.
    pub(crate) reading: &'static str,
    pub(crate) chart: Option<Chart>,
    pub(crate) table: Table,
}

impl Figure {
    /// In place of a chart that there is no data for: the reason.
    pub(crate) fn absent(title: &'static str, reason: impl Into<String>) -> Self {
        Self { title, says: reason.into(), reading: "", chart: None, table: Table::default() }
    }
}

/// The class that gives a legend's sample of a series its colour and shape.
fn legend_class(shape: Shape, ink: Ink) -> String {
    let shape = match shape {
        Shape::Dots => "dots",
        Shape::Rings => "rings",
        Shape::Line | Shape::Steps => "line",
        Shape::Dashes => "dashes",
    };
    let ink = match ink {
        Ink::Best => "best",
        Ink::Baseline => "baseline",
        Ink::Bound => "bound",
        Ink::Data => "data",
        Ink::Faint => "faint",
    };
    format!("{shape} {ink}")
}
