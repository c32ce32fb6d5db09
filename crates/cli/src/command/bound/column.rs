//! Reads a column of numbers from a file of any origin.
//!
//! It reads one number per line, JSON lines (numbers or objects), a JSON array of numbers or
//! objects, and CSV. CSV is separated by tab, semicolon, comma or blanks. It may have a header,
//! quotes, `#` comments and a byte order mark. It counts the cells that are no numbers, and names
//! the first such place. If several columns hold numbers, it takes the one named `performance`, as
//! `campaign export` writes it. Without such a column it guesses none. From such an export it takes
//! only the assignments drawn at random, with one mean each, whichever column is wanted.

use serde_json::Value;
use std::collections::BTreeMap;

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Column {
    /// Its name, or its number if there is no header; `None` if there is nothing but
    /// numbers.
    pub(crate) name: Option<String>,
    /// The numbers, in the order of the file.
    pub(crate) values: Vec<f64>,
    /// Cells of the column that hold no number.
    pub(crate) skipped: usize,
    /// The first of them: where and what.
    pub(crate) first_skipped: Option<String>,
    /// What they are counted in, if the file says so.
    pub(crate) unit: Option<String>,
    /// These are all that there are, by what the file says.
    pub(crate) complete: bool,
}

/// Reads the column `wanted` (a name, or a number from 1), or the only one with numbers. The error
/// is a reason for the user.
pub(crate) fn read(text: &str, wanted: Option<&str>) -> Result<Column, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match text.trim_start().chars().next() {
        None => Err("it is empty".to_owned()),
        Some('[') => array(text, wanted),
        Some('{') => lines_of_json(text, wanted),
        Some(_) => table(text, wanted),
    }
}

impl Column {
    /// From cells, each with where it is. The text of a cell that is no number says what is there
    /// instead.
    fn new(
        name: Option<String>,
        cells: impl Iterator<Item = (String, Result<f64, String>)>,
    ) -> Result<Self, String> {
        let mut column = Self { name, ..Self::default() };
        for (place, cell) in cells {
            match cell {
                Ok(value) => column.values.push(value),
                Err(text) => {
                    column.skipped += 1;
                    column.first_skipped.get_or_insert_with(|| format!("{place}: {text}"));
                }
            }
        }
        if !column.values.is_empty() {
            return Ok(column);
        }
        let what = column.name.map_or("it".to_owned(), |name| format!("column {name}"));
        Err(column.first_skipped.map_or(format!("{what} holds no number"), |first| {
            format!("{what} holds no number ({first})")
        }))
    }
}

fn array(text: &str, wanted: Option<&str>) -> Result<Column, String> {
    let values: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| format!("it starts as a JSON array: {error}"))?;
    let placed = values
        .into_iter()
        .enumerate()
        .map(|(i, value)| (format!("element {}", i + 1), value))
        .collect();
    json(placed, wanted)
}

/// A JSON export of a campaign is one.
const ONE_DOCUMENT: &str = "it is one JSON object; give JSON lines or the CSV of `pinwise campaign \
                            export`";

fn lines_of_json(text: &str, wanted: Option<&str>) -> Result<Column, String> {
    let mut values = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let value = serde_json::from_str(line).map_err(|error| {
            if serde_json::from_str::<Value>(text).is_ok() {
                return ONE_DOCUMENT.to_owned();
            }
            let column = error.column();
            format!(
                "line {number} is not JSON ({} at column {column}); expected one object per line",
                kind(&error)
            )
        })?;
        values.push((format!("line {number}"), value));
    }
    json(values, wanted)
}

/// What serde_json found wrong, without its own line number, which counts from the line's start.
fn kind(error: &serde_json::Error) -> &'static str {
    if error.is_eof() { "it ends early" } else { "syntax error" }
}

/// Numbers as they are. Of objects it takes the wanted key, or the only one that holds a number in
/// the first object.
fn json(values: Vec<(String, Value)>, wanted: Option<&str>) -> Result<Column, String> {
    let first = values.iter().find_map(|(_, value)| value.as_object());
    let key = match (wanted, first) {
        (None, None) => None,
        (Some(key), None) => {
            return Err(format!("it has no objects and so no column {key}; leave out --column"));
        }
        (Some(key), Some(object)) => {
            let known = values.iter().any(|(_, value)| value.get(key).is_some());
            let keys: Vec<&str> = object.keys().map(String::as_str).collect();
            known.then_some(Some(key)).ok_or_else(|| {
                format!("no object has a key {key}; the first has {}", list(&keys))
            })?
        }
        (None, Some(object)) => {
            let numeric: Vec<&str> =
                object.iter().filter(|(_, v)| v.is_number()).map(|(k, _)| k.as_str()).collect();
            Some(only(&numeric)?)
        }
    };
    let cells = values.iter().map(|(place, value)| {
        let cell = match (key, value) {
            (Some(key), Value::Object(object)) => object.get(key),
            _ => Some(value),
        };
        let number = cell.and_then(Value::as_f64);
        (
            place.clone(),
            number.ok_or_else(|| {
                cell.map_or("the key is missing".to_owned(), |cell| shortened(&cell.to_string()))
            }),
        )
    });
    Column::new(key.map(str::to_owned), cells)
}

/// The rows of a table without comments and empty lines, each with its line number.
fn table(text: &str, wanted: Option<&str>) -> Result<Column, String> {
    let lines: Vec<(usize, &str)> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .collect();
    let (Some(first), second) = (lines.first(), lines.get(1)) else {
        return Err("it holds comments only".to_owned());
    };
    let separator = separator(first.1, second.map_or(first.1, |line| line.1));
    let rows: Vec<(usize, Vec<String>)> =
        lines.iter().map(|(number, line)| (*number, cells(line, separator))).collect();
    let number = |cell: Option<&String>| cell.and_then(|cell| cell.parse::<f64>().ok());
    let width = rows.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
    // A header is a first row without numbers, above rows that have some.
    let headed = rows.len() > 1 && rows[0].1.iter().all(|cell| number(Some(cell)).is_none());
    let (header, body) = if headed { (Some(&rows[0].1), &rows[1..]) } else { (None, &rows[..]) };
    let named = |index: usize| {
        header
            .and_then(|header| header.get(index))
            .cloned()
            .unwrap_or_else(|| (index + 1).to_string())
    };
    let index = match wanted {
        Some(wanted) => {
            let by_name = header.and_then(|header| header.iter().position(|name| name == wanted));
            let by_number =
                wanted.parse().ok().filter(|n| (1..=width).contains(n)).map(|n: usize| n - 1);
            by_name.or(by_number).ok_or_else(|| match header {
                Some(header) => {
                    format!(
                        "it has no column {wanted}; it has {}",
                        list(&header.iter().map(String::as_str).collect::<Vec<_>>())
                    )
                }
                None => format!(
                    "it has no column {wanted}; it has no header and {width} columns, \
                    numbered from 1"
                ),
            })?
        }
        None => {
            let numeric: Vec<usize> = (0..width)
                .filter(|&i| body.iter().any(|(_, row)| number(row.get(i)).is_some()))
                .collect();
            let names: Vec<String> = numeric.iter().map(|&i| named(i)).collect();
            let chosen = only(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
            names.iter().position(|name| name == chosen).map_or(0, |at| numeric[at])
        }
    };
    if let Some(header) = header
        && let Some(drawn) = drawn_at_random(header, body, index)
    {
        return drawn;
    }
    let cells = body.iter().map(|(line, row)| {
        let cell = row.get(index);
        let value = number(cell);
        (
            format!("line {line}"),
            value.ok_or_else(|| {
                cell.map_or("the column is missing".to_owned(), |cell| shortened(cell))
            }),
        )
    });
    Column::new((width > 1 || header.is_some()).then(|| named(index)), cells)
}

/// Of an export of a campaign: the mean of each assignment that was drawn at random, in the column
/// `measured`. Its other windows are no random draws, and a bound from them would be wrong. `None`
/// for any other table.
fn drawn_at_random(
    header: &[String],
    body: &[(usize, Vec<String>)],
    measured: usize,
) -> Option<Result<Column, String>> {
    let column = |name: &str| header.iter().position(|cell| cell == name);
    let (purpose, cpus, name) = (column("purpose")?, column("cpus")?, header.get(measured)?);
    let mut windows: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let drawn = || body.iter().filter(|(_, row)| row.get(purpose).is_some_and(|p| p == "sample"));
    if drawn().next().is_none() {
        return Some(Err("it is an export of a campaign that drew no assignment at random".into()));
    }
    for (_, row) in drawn() {
        if let (Some(cpus), Some(value)) = (row.get(cpus), row.get(measured))
            && let Ok(value) = value.parse()
        {
            windows.entry(cpus).or_default().push(value);
        }
    }
    if windows.is_empty() {
        let number = |row: &[String]| row.get(measured).is_some_and(|it| it.parse::<f64>().is_ok());
        return body.iter().any(|(_, row)| number(row)).then(|| {
            Err("it is an export of a campaign in which no random draw was measured".into())
        });
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    // Several campaigns in one export need not have the same unit and assignments.
    let common = |name: &str| {
        let index = column(name)?;
        let first = body.first()?.1.get(index)?;
        let alike = body.iter().all(|(_, row)| row.get(index) == Some(first));
        Some(first).filter(|cell| alike && !cell.is_empty())
    };
    let same = column("value")
        .is_some_and(|value| body.iter().all(|(_, row)| row.get(value) == row.get(measured)));
    let unit = common("unit").filter(|_| [PERFORMANCE, "value"].contains(&name.as_str()));
    let unit = unit.map(|unit| if same { unit.clone() } else { format!("1/({unit})") });
    let complete = common("assignments").is_some_and(|all| *all == windows.len().to_string());
    Some(Ok(Column {
        name: Some(format!("{name}, means of assignments drawn at random")),
        values: windows.into_values().map(mean).collect(),
        unit,
        complete,
        ..Column::default()
    }))
}

/// What separates the cells of a line.
#[derive(Clone, Copy)]
enum Separator {
    Character(char),
    Blanks,
    /// A line is one cell.
    LineEnd,
}

/// The first of tab, semicolon and comma that occurs equally often in the first two rows. Otherwise
/// the first that occurs in either. Otherwise blanks, if they make equally many cells in both.
fn separator(first: &str, second: &str) -> Separator {
    let count = |line: &str, separator| cells(line, separator).len();
    let candidates = ['\t', ';', ','].map(Separator::Character);
    let regular = |c: &&Separator| count(first, **c) > 1 && count(first, **c) == count(second, **c);
    let present = |c: &&Separator| count(first, **c) > 1 || count(second, **c) > 1;
    let found = candidates.iter().find(regular).or_else(|| candidates.iter().find(present));
    found.or([Separator::Blanks].iter().find(regular)).copied().unwrap_or(Separator::LineEnd)
}

/// The cells of a line, trimmed, without the quotes around them; `""` inside quotes is one quote. A
/// quote that is not closed ends with the line.
fn cells(line: &str, separator: Separator) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut inside = false;
    let mut characters = line.trim().chars().peekable();
    while let Some(c) = characters.next() {
        // Never empty: a cell is pushed before the loop and popped nowhere.
        let Some(cell) = cells.last_mut() else { break };
        match c {
            '"' if inside && characters.peek() == Some(&'"') => cell.extend(characters.next()),
            '"' if inside || cell.trim().is_empty() => inside = !inside,
            c if inside => cell.push(c),
            c if matches!(separator, Separator::Character(s) if s == c) => {
                cells.push(String::new())
            }
            c if matches!(separator, Separator::Blanks) && c.is_whitespace() => {
                if !cell.is_empty() {
                    cells.push(String::new());
                }
            }
            c => cell.push(c),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// The column that `campaign export` writes what was measured to.
const PERFORMANCE: &str = "performance";

/// The only name, or the one that says it is the performance; or the reason why none is taken.
fn only<'a>(names: &[&'a str]) -> Result<&'a str, String> {
    match names {
        [] => Err("no column holds a number".to_owned()),
        [name] => Ok(name),
        names if names.contains(&PERFORMANCE) => Ok(PERFORMANCE),
        _ => Err(format!(
            "several columns hold numbers: choose one of {} with --column",
            list(names)
        )),
    }
}

/// At most eight names.
fn list(names: &[&str]) -> String {
    const MOST: usize = 8;
    let shown = names[..names.len().min(MOST)].join(", ");
    if names.len() > MOST { format!("{shown}, … ({} in all)", names.len()) } else { shown }
}

/// At most 30 characters of a cell.
fn shortened(cell: &str) -> String {
    const MOST: usize = 30;
    let shown: String = cell.chars().take(MOST).collect();
    match shown.as_str() {
        "" => "nothing".to_owned(),
        _ if shown.len() < cell.len() => format!("{}…", shown.escape_debug()),
        _ => shown.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, wanted: Option<&str>) -> Vec<f64> {
        read(text, wanted).unwrap().values
    }

    fn reason(text: &str, wanted: Option<&str>) -> String {
        read(text, wanted).unwrap_err()
    }

    #[test]
    fn an_export_says_its_unit_and_whether_all_assignments_were_drawn() {
        let export = |all: &str, second: &str| {
            let text = format!(
                "number,purpose,cpus,value,performance,unit,assignments,campaign\n\
                 0,baseline,unpinned,9,9,packets/s,{all},3\n\
                 1,sample,0 1,10,10,packets/s,{all},3\n\
                 2,sample,0 2,12,{second},packets/s,{all},3\n\
                 3,sample,0 2,14,14,packets/s,{all},3\n"
            );
            read(&text, None).unwrap()
        };
        let whole = export("2", "12");
        assert_eq!(whole.values, [10.0, 13.0]);
        assert_eq!((whole.unit.as_deref(), whole.complete), (Some("packets/s"), true));
        assert!(!export("3", "12").complete && !export("", "12").complete);
        assert_eq!(export("2", "0.5").unit.as_deref(), Some("1/(packets/s)"));
    }

    #[test]
    fn one_number_a_line_needs_no_choice() {
        let column = read("# packets/s\n1.5\n\n2e3\n-3\n", None).unwrap();
        assert_eq!((column.name, column.values), (None, vec![1.5, 2000.0, -3.0]));
        assert_eq!(
            read("packets per second\n1\n2\n", None).unwrap().name.as_deref(),
            Some("packets per second")
        );
    }

    #[test]
    fn every_usual_separator_is_recognised() {
        for separator in ["\t", ";", ",", " ", "   ", ", "] {
            let text = ["name", "pps"].join(separator)
                + "\r\n"
                + &["a", "1.5"].join(separator)
                + "\n"
                + &["b", "2"].join(separator);
            let column = read(&text, None).unwrap();
            assert_eq!(
                (column.name.as_deref(), column.values),
                (Some("pps"), vec![1.5, 2.0]),
                "{separator:?}"
            );
        }
    }

    #[test]
    fn quotes_may_hold_the_separator_and_a_byte_order_mark_is_no_part_of_a_name() {
        assert_eq!(
            values("\u{feff}\"pps\",who\n\"1.5\",\"a, \"\"b\"\"\"\n2,c\n", Some("pps")),
            [1.5, 2.0]
        );
    }

    #[test]
    fn a_column_is_found_by_name_or_number() {
        let text = "run,pps\n1,10\n2,20\n";
        assert_eq!(values(text, Some("pps")), [10.0, 20.0]);
        assert_eq!(values(text, Some("1")), [1.0, 2.0]);
        assert_eq!(values("1 10\n2 20", Some("2")), [10.0, 20.0]);
        assert_eq!(reason(text, Some("cpu")), "it has no column cpu; it has run, pps");
        assert_eq!(
            reason("1 2\n3 4\n", Some("3")),
            "it has no column 3; it has no header and 2 columns, numbered from 1"
        );
    }

    #[test]
    fn several_columns_of_numbers_are_not_guessed() {
        assert_eq!(
            reason("run,pps\n1,10\n", None),
            "several columns hold numbers: choose one of run, pps with --column"
        );
        assert_eq!(
            reason("1 2\n3 4", None),
            "several columns hold numbers: choose one of 1, 2 with --column"
        );
        assert_eq!(
            reason("{\"run\":1,\"pps\":2}", None),
            "several columns hold numbers: choose one of pps, run with --column"
        );
    }

    #[test]
    fn a_column_named_performance_is_meant_where_there_are_several() {
        assert_eq!(read("number,performance\n0,10\n1,20\n", None).unwrap().values, [10.0, 20.0]);
        assert_eq!(values("{\"number\":1,\"performance\":2}", None), [2.0]);
        assert_eq!(values("number,performance\n3,10\n", Some("number")), [3.0]);
    }

    #[test]
    fn cells_without_a_number_are_counted_and_the_first_is_named() {
        let column = read("pps\n10\nn/a\n12 Mpps\n13\n", None).unwrap();
        assert_eq!((column.values, column.skipped), (vec![10.0, 13.0], 2));
        assert_eq!(column.first_skipped.as_deref(), Some("line 3: n/a"));
        let ragged = read("a,b\nx,1\ny\nz,3\n", None).unwrap();
        assert_eq!(
            (ragged.skipped, ragged.first_skipped.as_deref()),
            (1, Some("line 3: the column is missing"))
        );
    }

    #[test]
    fn json_comes_as_lines_or_as_an_array() {
        assert_eq!(values("[1, 2.5, null, 3]", None), [1.0, 2.5, 3.0]);
        assert_eq!(
            read("[1, null]", None).unwrap().first_skipped.as_deref(),
            Some("element 2: null")
        );
        assert_eq!(values("[{\"pps\":1},{\"pps\":2}]", None), [1.0, 2.0]);
        assert_eq!(values("{\"a\":1,\"pps\":5}\n\n{\"a\":2,\"pps\":6}\n", Some("pps")), [5.0, 6.0]);
        assert_eq!(values("{\"who\":\"a\",\"pps\":5}\n{\"who\":\"b\"}\n", None), [5.0]);
        assert_eq!(reason("{\"a\":1}", Some("b")), "no object has a key b; the first has a");
        assert_eq!(
            reason("[1]", Some("b")),
            "it has no objects and so no column b; leave out --column"
        );
        assert!(
            reason("{\"a\":1}\n{\"a\":", None)
                .starts_with("line 2 is not JSON (it ends early at column 5)")
        );
        assert_eq!(reason("{\n  \"measurements\": []\n}\n", None), ONE_DOCUMENT);
    }

    #[test]
    fn files_without_numbers_say_so() {
        assert_eq!(reason("", None), "it is empty");
        assert_eq!(reason(" \n\n", None), "it is empty");
        assert_eq!(reason("# only this\n", None), "it holds comments only");
        assert_eq!(reason("a,b\nc,d\n", None), "no column holds a number");
        assert_eq!(reason("pps,n\nx,1\n", Some("pps")), "column pps holds no number (line 2: x)");
        assert_eq!(reason("[]", None), "it holds no number");
    }

    #[test]
    fn infinite_values_are_numbers_for_the_estimator_to_judge() {
        assert_eq!(values("1\ninf\n", None), [1.0, f64::INFINITY]);
    }

    #[test]
    fn of_an_export_only_random_draws_count_once_each() {
        let head = "number,purpose,cpus,windows,value,performance\n";
        let text = format!(
            "{head}0,baseline,unpinned,1,9,9\n1,sample,0 1,1,2,2\n2,sample,1 0,1,5,5\n\
             3,sample,0 1,1,4,4\n4,final,0 1,1,8,8\n"
        );
        assert_eq!(read(&text, None).unwrap().values, [3.0, 5.0]);
        let named = read(&text, Some("performance")).unwrap();
        assert_eq!(named, read(&text, None).unwrap(), "the column is the same");
        let name = "value, means of assignments drawn at random";
        let value = read(&text, Some("5")).unwrap();
        assert_eq!((value.name.as_deref(), value.values), (Some(name), vec![3.0, 5.0]));
        let failed = format!("{head}0,sample,0 1,1,,\n1,climb,0 1,1,2,2\n");
        assert!(read(&failed, None).unwrap_err().contains("no random draw was measured"));
        let words = read(&text, Some("purpose")).unwrap_err();
        assert!(words.contains("holds no number"), "{words}");
        let none = format!("{head}0,baseline,unpinned,1,9,9\n1,climb,0 1,1,2,2\n");
        assert!(read(&none, None).unwrap_err().contains("drew no assignment at random"));
    }
}
