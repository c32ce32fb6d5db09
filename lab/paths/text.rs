//! Text in Rust: matches a regular expression, parses JSON or compresses.

use std::io::Write;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().expect("regex, json or bzip2");
    let text = std::fs::read_to_string(arguments.next().expect("a file")).unwrap();
    let result = match task.as_str() {
        "regex" => matched(&text),
        "json" => parsed(&text),
        _ => compressed(&text),
    };
    println!("{result}");
}

fn matched(text: &str) -> usize {
    let pattern = r"(\d+)\s+alpha(\d*7|1+)\s+beta\s+(1[0-2]|[3-5])\b";
    let pattern = regex_lite::Regex::new(pattern).unwrap();
    text.lines().filter_map(|line| pattern.captures(line)).map(|found| found[1].len()).sum()
}

fn parsed(text: &str) -> usize {
    let row = |(number, line): (usize, &str)| {
        let fields: Vec<&str> = line.split(' ').collect();
        let values = [1.5 * number as f64, fields[3].parse().unwrap()];
        serde_json::json!({
            "id": number, "n": fields[0].parse::<i64>().unwrap(), "name": fields[1],
            "f": values, "x": null,
        })
    };
    let rows: Vec<serde_json::Value> = text.lines().enumerate().map(row).collect();
    let document = serde_json::to_string(&rows).unwrap();
    let mut thirds = 0;
    for _ in 0..3 {
        let value: serde_json::Value = serde_json::from_str(&document).unwrap();
        let rows = value.as_array().unwrap();
        thirds += rows.iter().filter(|row| row["n"].as_i64().unwrap() % 3 == 0).count();
    }
    thirds
}

fn compressed(text: &str) -> usize {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().len()
}
