//! A host of `--on ssh:` measures real programs for one worker of a store at a time.
//!
//! A coordinator that is killed may be resumed while its workers still run: they end what they
//! measure first. The new worker of a host waits for its turn, until the earlier one has put
//! everything back. Its turn is a socket with an abstract name: it needs no file, and the kernel
//! gives the name back when the process has ended, however it ends. Slurm gives a node to one job
//! at a time, so its workers need no turn.
//!
//! *Limits.* The name counts within one host and one network namespace. Other stores and users have
//! other turns, and so has a host that is named twice. After a `kill -9` of the worker itself, its
//! guardian may still put things back when the next worker begins.

use crate::launch::fnv1a;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// What one worker at a time has. It is given back when this is dropped.
#[derive(Debug)]
pub struct NodeTurn(#[expect(dead_code, reason = "it is held")] UnixDatagram);

impl NodeTurn {
    /// Takes the turn of this name. `None`: another process has it.
    ///
    /// # Errors
    /// There are no sockets, or the name is too long for one (over 90 bytes).
    pub fn take(name: &str) -> io::Result<Option<Self>> {
        let address = SocketAddr::from_abstract_name(format!("pinwise-worker-{name}"))?;
        match UnixDatagram::bind_addr(&address) {
            Ok(socket) => Ok(Some(Self(socket))),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The name for the workers of a store, which is in this folder or file of this host.
    pub fn name(host: &str, store: &Path) -> String {
        let mut text = store.as_os_str().as_encoded_bytes().to_vec();
        text.push(0);
        text.extend_from_slice(host.as_bytes());
        format!("{:016x}", fnv1a(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_has_a_turn() {
        let name = format!("test-{}", std::process::id());
        let first = NodeTurn::take(&name).unwrap();
        assert!(first.is_some() && NodeTurn::take(&name).unwrap().is_none());
        drop(first);
        assert!(NodeTurn::take(&name).unwrap().is_some());
        assert!(NodeTurn::take(&"long".repeat(100)).is_err());
    }

    #[test]
    fn each_store_of_each_host_has_a_turn_of_its_own() {
        let name = |host, store| NodeTurn::name(host, Path::new(store));
        assert_eq!(name("a", "s.db"), name("a", "s.db"));
        assert!(name("a", "s.db") != name("b", "s.db") && name("a", "s.db") != name("a", "t.db"));
    }
}
