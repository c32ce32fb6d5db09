//! `/proc/net/dev`: packets and bytes of a network interface.

use crate::procio::Pids;
use crate::source::{MetricValue, Source, SourceError};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The columns of `/proc/net/dev`, under the names of `/sys/class/net/IFACE/statistics`.
pub(crate) const FIELDS: &[&str] = &[
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_dropped",
    "rx_fifo",
    "rx_frame",
    "rx_compressed",
    "rx_multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_dropped",
    "tx_fifo",
    "tx_collisions",
    "tx_carrier",
    "tx_compressed",
];

/// One counter of one interface. It is seen from the network namespace of the program if it has a
/// process, from ours otherwise.
pub(crate) struct Netdev {
    interface: String,
    field: String,
    pids: Pids,
    /// Kept open: a read costs a fraction of an open.
    file: Option<File>,
    buffer: Vec<u8>,
}

impl Netdev {
    pub(crate) fn new(interface: String, field: String, pids: Pids) -> Self {
        Self { interface, field, pids, file: None, buffer: vec![0; 4096] }
    }

    /// Reads the whole file from its start.
    fn text(&mut self) -> Result<String, SourceError> {
        let file = match &self.file {
            Some(file) => file,
            None => {
                let path = match (self.pids)().first() {
                    Some(pid) => format!("/proc/{pid}/net/dev"),
                    None => "/proc/net/dev".to_owned(),
                };
                self.file.insert(File::open(&path).map_err(|error| SourceError::on(path, error))?)
            }
        };
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
            }
            match file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) => {
                    // The process whose view this was is gone: the next reading opens another's.
                    self.file = None;
                    return Err(SourceError::on("/proc/net/dev", error));
                }
            }
        }
        Ok(String::from_utf8_lossy(&self.buffer[..length]).into_owned())
    }
}

impl Source for Netdev {
    fn read(&mut self, _: &dyn Fn() -> bool) -> Result<MetricValue, SourceError> {
        let text = self.text()?;
        match parse(&text, &self.interface, &self.field) {
            Some(value) => Ok(MetricValue::of(value as f64)),
            None => {
                let known: Vec<&str> = interfaces(&text).map(|(name, _)| name).collect();
                Err(SourceError::on(
                    format_args!("interface '{}'", self.interface),
                    format_args!("there are only {}", known.join(", ")),
                ))
            }
        }
    }

    fn exact(&self) -> bool {
        true
    }
}

/// Interface names and the columns behind them.
fn interfaces(text: &str) -> impl Iterator<Item = (&str, &str)> {
    // Two lines of headings; a name ends at the last colon, since aliases (`eth0:1`) contain one.
    text.lines()
        .skip(2)
        .filter_map(|line| line.rsplit_once(':'))
        .map(|(name, columns)| (name.trim(), columns))
}

fn parse(text: &str, interface: &str, field: &str) -> Option<u64> {
    let column = FIELDS.iter().position(|name| *name == field)?;
    let (_, columns) = interfaces(text).find(|(name, _)| *name == interface)?;
    columns.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    const TEXT: &str = "Inter-|   Receive                                                |  \
        Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    \
        packets errs drop fifo colls carrier compressed
    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 \
        0 0 0
eth0:1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
";

    #[test]
    fn columns_are_found_by_name() {
        assert_eq!(parse(TEXT, "lo", "rx_packets"), Some(10));
        assert_eq!(parse(TEXT, "eth0:1", "rx_bytes"), Some(1));
        assert_eq!(parse(TEXT, "eth0:1", "tx_packets"), Some(10));
        assert_eq!(parse(TEXT, "eth0:1", "tx_compressed"), Some(16));
        assert_eq!(parse(TEXT, "eth0", "rx_bytes"), None);
    }

    #[test]
    fn packets_over_loopback_are_counted() {
        let mut source = Netdev::new("lo".into(), "tx_packets".into(), Box::new(Vec::new));
        let before = source.read(&|| false).unwrap().value;
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        for _ in 0..100 {
            socket.send_to(b"x", to).unwrap();
        }
        let after = source.read(&|| false).unwrap().value;
        assert!(after - before >= 100.0, "{before} {after}");
    }

    #[test]
    fn an_unknown_interface_is_answered_with_the_known_ones() {
        let mut source = Netdev::new("eth99".into(), "tx_packets".into(), Box::new(Vec::new));
        let read = source.read(&|| false);
        assert!(matches!(read, Err(SourceError::Unreadable(why)) if why.contains("lo")));
    }
}
