//! Matrices as `core-to-core-latency --csv` writes them: a row for each context, nanoseconds
//! between commas, nothing where nothing was measured. Contexts are numbered from 0, for lack of
//! their real numbers.

use super::{LatencyError, LatencyMatrix, LatencyUnit, MOST_CONTEXTS};
use crate::CpuId;

impl LatencyMatrix {
    /// Reads such a matrix. Error: the line that does not fit.
    pub fn from_csv(text: &str) -> Result<Self, LatencyError> {
        let rows: Vec<&str> = text.trim_end().lines().map(str::trim).collect();
        let fail = |line: usize, reason: String| LatencyError::Line { line, reason };
        if rows.len() > MOST_CONTEXTS {
            return Err(fail(MOST_CONTEXTS + 1, format!("more than {MOST_CONTEXTS} contexts")));
        }
        let mut cells = Vec::with_capacity(rows.len() * rows.len());
        for (line, row) in (1..).zip(&rows) {
            let values: Vec<&str> = row.split(',').map(str::trim).collect();
            if values.len() != rows.len() {
                let reason = format!(
                    "{} values in a matrix of {} lines; expected as many",
                    values.len(),
                    rows.len()
                );
                return Err(fail(line, reason));
            }
            for value in values {
                let number =
                    value.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
                match (value.is_empty(), number) {
                    (true, _) => cells.push(None),
                    (false, Some(number)) => cells.push(Some(number)),
                    (false, None) => {
                        return Err(fail(
                            line,
                            format!("'{value}': expected nanoseconds, or nothing"),
                        ));
                    }
                }
            }
        }
        // Rows are at most MOST_CONTEXTS.
        Self::new(
            (0..rows.len()).map(|context| CpuId(context as u32)).collect(),
            LatencyUnit::Ns,
            cells,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_matrix_is_enough() {
        let matrix = LatencyMatrix::from_csv(",,\n17.75,,\n85.5,84.25,\n").unwrap();
        assert_eq!(matrix.contexts(), [CpuId(0), CpuId(1), CpuId(2)]);
        assert_eq!(
            [matrix.get(1, 0), matrix.get(0, 1), matrix.get(2, 1)],
            [Some(17.75), None, Some(84.25)]
        );
    }

    #[test]
    fn errors_name_the_line() {
        let refuse = |text: &str| LatencyMatrix::from_csv(text).unwrap_err().to_string();
        assert_eq!(refuse(",\n5,,\n"), "line 2: 3 values in a matrix of 2 lines; expected as many");
        assert_eq!(refuse(",\nfast,\n"), "line 2: 'fast': expected nanoseconds, or nothing");
        assert_eq!(refuse(",\n-5,\n"), "line 2: '-5': expected nanoseconds, or nothing");
        assert!(refuse("").contains("0 contexts"));
        assert!(refuse("5").contains("1 contexts"));
    }
}
