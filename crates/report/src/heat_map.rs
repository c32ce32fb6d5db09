//! [`HeatMap`]: a table of numbers on shades.

use askama::Template;

/// Shades of the style sheet, from the lightest to the darkest.
pub(crate) const SHADES: usize = 8;

/// Numbers in rows and columns, each on a shade.
#[derive(Debug, Template)]
#[template(path = "heat_map.html")]
pub(crate) struct HeatMap {
    /// What it shows, for those who cannot see it.
    pub(crate) label: &'static str,
    /// What rows and columns are.
    pub(crate) corner: &'static str,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<(String, Vec<HeatCell>)>,
}

/// A number.
#[derive(Debug)]
pub(crate) struct HeatCell {
    /// Its shade, below [`SHADES`]; `None` where there is no number.
    pub(crate) shade: Option<usize>,
    pub(crate) text: String,
}

impl HeatCell {
    fn class(&self) -> String {
        self.shade.map_or("none".to_owned(), |shade| format!("s{shade}"))
    }
}
