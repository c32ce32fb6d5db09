//! Where workers run: hosts that ssh reaches, or nodes that Slurm gives.

use serde::{Deserialize, Serialize};

/// The nodes of a campaign. Stored with it, so that it is resumed on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "StoredNodes")]
pub enum Nodes {
    /// Hosts, by the names that ssh knows.
    Ssh(Vec<String>),
    /// Nodes of Slurm, each for this alone.
    Slurm {
        /// The partition; `None`: Slurm's default.
        partition: Option<String>,
        /// How many.
        count: usize,
    },
}

/// Nodes as a store has them, which anybody may have written.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredNodes {
    Ssh(Vec<String>),
    Slurm { partition: Option<String>, count: usize },
}

impl TryFrom<StoredNodes> for Nodes {
    type Error = NodesError;

    fn try_from(stored: StoredNodes) -> Result<Self, NodesError> {
        match stored {
            StoredNodes::Ssh(hosts) => Self::parse(&format!("ssh:{}", hosts.join(",")), None),
            StoredNodes::Slurm { partition: Some(partition), count } => {
                Self::parse(&format!("slurm:{partition}"), Some(count))
            }
            StoredNodes::Slurm { partition: None, count } => Self::parse("slurm", Some(count)),
        }
    }
}

/// The most nodes.
pub const MOST_NODES: usize = 1024;

/// Why a text names no nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodesError {
    /// It names neither way.
    #[error("--on {0}: expected ssh:HOST,HOST or slurm[:PARTITION]")]
    Unknown(String),
    /// A host or a partition has no name that can stand on a command line.
    #[error("--on: '{0}' is no name of a host or a partition")]
    Name(String),
    /// A host is named twice: its measurements would disturb each other.
    #[error("--on names {0} twice: name each host once")]
    Twice(String),
    /// Slurm wants to know how many.
    #[error("--on slurm needs the number of nodes: add --nodes N")]
    Uncounted,
    /// There are as many as are named.
    #[error("--on ssh names its hosts: leave --nodes out")]
    Counted,
    /// Too many, or none.
    #[error("--on takes 1 to {MOST_NODES} nodes")]
    Number,
}

impl Nodes {
    /// Reads `ssh:HOST,HOST` or `slurm[:PARTITION]` with a number of nodes.
    ///
    /// # Errors
    /// See [`NodesError`].
    pub fn parse(on: &str, count: Option<usize>) -> Result<Self, NodesError> {
        let (way, named) = match on.split_once(':') {
            Some((way, named)) => (way, Some(named)),
            None => (on, None),
        };
        let nodes = match (way, named) {
            ("ssh", Some(hosts)) => {
                let mut known: Vec<String> = Vec::new();
                for host in hosts.split(',') {
                    if known.iter().any(|before| before == host) {
                        return Err(NodesError::Twice(host.to_owned()));
                    }
                    known.push(name(host)?);
                }
                if count.is_some() {
                    return Err(NodesError::Counted);
                }
                Self::Ssh(known)
            }
            ("slurm", partition) => {
                let partition = partition.map(name).transpose()?;
                Self::Slurm { partition, count: count.ok_or(NodesError::Uncounted)? }
            }
            _ => return Err(NodesError::Unknown(on.to_owned())),
        };
        if (1..=MOST_NODES).contains(&nodes.count()) { Ok(nodes) } else { Err(NodesError::Number) }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Ssh(hosts) => hosts.len(),
            Self::Slurm { count, .. } => *count,
        }
    }
}

/// A name that no program takes for an option or for several words.
fn name(text: &str) -> Result<String, NodesError> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._@:[]%".contains(letter);
    let is_name = !text.is_empty() && !text.starts_with('-') && text.chars().all(plain);
    if is_name { Ok(text.to_owned()) } else { Err(NodesError::Name(text.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_as_they_are_named() {
        let hosts = ["a", "me@b.example"].map(str::to_owned).to_vec();
        assert_eq!(Nodes::parse("ssh:a,me@b.example", None), Ok(Nodes::Ssh(hosts)));
        let slurm = |partition: Option<&str>| {
            Ok(Nodes::Slurm { partition: partition.map(str::to_owned), count: 4 })
        };
        assert_eq!(Nodes::parse("slurm", Some(4)), slurm(None));
        assert_eq!(Nodes::parse("slurm:short", Some(4)), slurm(Some("short")));
        let refused = |on: &str, count| Nodes::parse(on, count).unwrap_err();
        assert_eq!(refused("ssh:a,a", None), NodesError::Twice("a".into()));
        assert_eq!(refused("ssh:a", Some(2)), NodesError::Counted);
        assert_eq!(refused("slurm", None), NodesError::Uncounted);
        assert_eq!(refused("slurm", Some(0)), NodesError::Number);
        for (on, named) in
            [("ssh:", ""), ("ssh:a,", ""), ("ssh:-oProxyCommand=x", ""), ("slurm:", "")]
        {
            assert!(matches!(refused(on, Some(1)), NodesError::Name(_)), "{on}{named}");
        }
        for nodes in [Nodes::parse("ssh:a,b", None), slurm(None), slurm(Some("short"))] {
            let nodes = nodes.unwrap();
            let stored = serde_json::to_string(&nodes).unwrap();
            assert_eq!(serde_json::from_str::<Nodes>(&stored).unwrap(), nodes);
        }
        for stored in [
            r#"{"ssh":["-oProxyCommand=x"]}"#,
            r#"{"ssh":["a","a"]}"#,
            r#"{"ssh":[]}"#,
            r#"{"slurm":{"partition":"--wrap=x","count":1}}"#,
            r#"{"slurm":{"partition":null,"count":1000000}}"#,
        ] {
            assert!(serde_json::from_str::<Nodes>(stored).is_err(), "{stored}");
        }
        for on in ["ssh", "pbs:a", ""] {
            assert_eq!(refused(on, None), NodesError::Unknown(on.into()));
        }
    }
}
