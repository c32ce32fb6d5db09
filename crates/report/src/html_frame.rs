//! [`HtmlFrame`]: the HTML page around every document, with its style, script and data.

use crate::chart::Chart;
use askama::Template;
use pinwise_campaign::StoreError;
use pinwise_jobs::JobError;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing to show yet.
    #[error(transparent)]
    Answer(#[from] JobError),
    /// An assignment names threads or contexts that the campaign does not have.
    #[error(
        "campaign {id}: an assignment does not fit its {threads} threads and {contexts} allowed \
         contexts; the store is damaged"
    )]
    Misfit {
        /// The campaign.
        id: i64,
        /// Threads of its workload.
        threads: usize,
        /// Allowed contexts of its machine.
        contexts: usize,
    },
    /// The data could not be written as JSON.
    #[error("the page's data cannot be written: {0}")]
    Data(#[from] serde_json::Error),
    /// A template could not be filled in.
    #[error("the page cannot be written: {0}")]
    Template(#[from] askama::Error),
}

/// The shell around a document: style, script and data.
#[derive(Template)]
#[template(path = "page.html")]
pub(crate) struct HtmlFrame {
    title: String,
    /// HTML.
    document: String,
    data: String,
}

impl HtmlFrame {
    /// The whole page.
    pub(crate) fn page(
        title: String,
        document: String,
        charts: &[&Chart],
    ) -> Result<String, ReportError> {
        let data = for_script(&serde_json::to_string(charts)?);
        Ok(Self { title, document, data }.render()?)
    }
}

// Named in the templates.
pub(crate) const HEAT_STYLE: &str = include_str!("../assets/heat.css");
pub(crate) const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const UPLOT_STYLE: &str = include_str!("../assets/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("../assets/uPlot.iife.min.js");
const UPLOT_LICENSE: &str = include_str!("../assets/uPlot.LICENSE");

/// JSON that can stand in a script element: nothing in it can end the element or begin a comment.
fn for_script(json: &str) -> String {
    json.replace('<', r"\u003c").replace('>', r"\u003e").replace('&', r"\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_end_the_script_element_and_says_the_same() {
        let hostile = r#"</script><script>alert(1)</script><!-- & "quoted" \ "#;
        let written = for_script(&serde_json::to_string(hostile).unwrap());
        assert!(!written.contains(['<', '>', '&']), "{written}");
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), hostile);
    }
}
