//! The telemetry socket that every DPDK program opens (`dpdk_telemetry.v2`): JSON over
//! SOCK_SEQPACKET. One packet is a question (`/ethdev/stats,0`), one is an answer.

use crate::source::{MetricValue, Source, SourceError};
use pinwise_figures::duration;
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A counter summed over all ports of one program.
pub(crate) struct Dpdk {
    field: String,
    path: PathBuf,
    connection: Option<Connection>,
}

const NO_SOCKET: &str =
    "no such socket: is the program running with this --file-prefix, and telemetry on?";
/// A program that takes longer than this to answer is stuck.
const TIMEOUT: Duration = Duration::from_secs(2);

impl Dpdk {
    /// The program with this `--file-prefix`; `directory` is where DPDK programs keep their files
    /// ([`runtime_directory`]).
    pub(crate) fn new(directory: PathBuf, prefix: &str, field: String) -> Self {
        Self { field, path: directory.join(prefix).join("dpdk_telemetry.v2"), connection: None }
    }

    /// Why no program answers; nothing is asked.
    pub(crate) fn found(&self) -> Result<(), String> {
        let there = self.path.exists();
        there.then_some(()).ok_or_else(|| format!("{}: {NO_SOCKET}", self.path.display()))
    }

    fn sum(&mut self, cancelled: &dyn Fn() -> bool) -> Result<f64, SourceError> {
        let path = self.path.display();
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(Connection::open(&self.path, cancelled)?),
        };
        let mut sum = 0.0;
        for port in connection.ports.clone() {
            let answer = connection.ask(&format!("/ethdev/stats,{port}"), cancelled)?;
            match answer["/ethdev/stats"][&self.field].as_f64() {
                Some(value) => sum += value,
                None => {
                    let known = answer["/ethdev/stats"].as_object().map(|fields| {
                        fields
                            .iter()
                            .filter(|(_, value)| value.is_number())
                            .map(|(name, _)| name.as_str())
                            .collect::<Vec<_>>()
                    });
                    let known = known
                        .filter(|known| !known.is_empty())
                        .map_or("none".into(), |known| known.join(", "));
                    let missing =
                        format_args!("port {port} has no counter '{}'; it has {known}", self.field)
                            .to_string();
                    return Err(SourceError::on(path, missing));
                }
            }
        }
        Ok(sum)
    }
}

impl Source for Dpdk {
    fn read(&mut self, cancelled: &dyn Fn() -> bool) -> Result<MetricValue, SourceError> {
        let sum = self.sum(cancelled);
        if sum.is_err() {
            // An answer may still be under way: the next reading must not take it for its own.
            self.connection = None;
        }
        Ok(MetricValue::of(sum?))
    }

    fn exact(&self) -> bool {
        true
    }
}

/// Where DPDK keeps its sockets (`eal_create_runtime_dir`): `/var/run/dpdk` for root, otherwise
/// `$XDG_RUNTIME_DIR/dpdk` or `/tmp/dpdk`.
pub(crate) fn runtime_directory() -> PathBuf {
    let base = if rustix::process::getuid().is_root() {
        "/var/run".into()
    } else {
        std::env::var_os("XDG_RUNTIME_DIR").unwrap_or_else(|| "/tmp".into())
    };
    PathBuf::from(base).join("dpdk")
}

struct Connection {
    socket: OwnedFd,
    path: String,
    /// The ethernet ports; they do not change while a program forwards.
    ports: Vec<u64>,
    buffer: Vec<u8>,
}

impl Connection {
    fn open(path: &std::path::Path, cancelled: &dyn Fn() -> bool) -> Result<Self, SourceError> {
        let shown = path.display().to_string();
        let fail = |errno: Errno| match errno {
            Errno::NOENT => SourceError::on(&shown, NO_SOCKET),
            Errno::CONNREFUSED => {
                SourceError::on(&shown, "nobody listens: the program that made this socket is gone")
            }
            Errno::ACCESS => {
                SourceError::on(&shown, "permission denied: run pinwise as the program's user")
            }
            errno => SourceError::on(&shown, errno),
        };
        let address = SocketAddrUnix::new(path).map_err(fail)?;
        let socket = net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(fail)?;
        net::connect(&socket, &address).map_err(fail)?;
        sockopt::set_socket_timeout(
            &socket,
            sockopt::Timeout::Recv,
            Some(Duration::from_millis(15)),
        )
        .map_err(fail)?;
        let mut connection =
            Self { socket, path: shown, ports: Vec::new(), buffer: vec![0; 16 * 1024] };
        // The program speaks first: {"version":…,"pid":…,"max_output_len":16384}.
        let greeting = connection.receive(cancelled)?;
        if let Some(longest) =
            greeting["max_output_len"].as_u64().and_then(|length| usize::try_from(length).ok())
        {
            connection.buffer.resize(longest.clamp(16 * 1024, 1024 * 1024), 0);
        }
        let list = connection.ask("/ethdev/list", cancelled)?;
        connection.ports = list["/ethdev/list"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect();
        if connection.ports.is_empty() {
            return Err(SourceError::on(&connection.path, "the program has no ethernet port"));
        }
        Ok(connection)
    }

    fn ask(&mut self, question: &str, cancelled: &dyn Fn() -> bool) -> Result<Value, SourceError> {
        net::send(&self.socket, question.as_bytes(), SendFlags::NOSIGNAL)
            .map_err(|errno| SourceError::on(&self.path, errno))?;
        self.receive(cancelled)
    }

    /// One packet. The socket's own time limit is short so that a Ctrl-C is seen.
    fn receive(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Value, SourceError> {
        let deadline = Instant::now() + TIMEOUT;
        let length = loop {
            match net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => {
                    return Err(SourceError::on(&self.path, "the program closed the connection"));
                }
                Ok((length, _)) => break length,
                Err(Errno::AGAIN | Errno::INTR) if cancelled() => {
                    return Err(SourceError::Cancelled);
                }
                Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => {}
                Err(Errno::AGAIN | Errno::INTR) => {
                    return Err(SourceError::on(
                        &self.path,
                        format_args!("no answer in {}", duration(TIMEOUT)),
                    ));
                }
                Err(errno) => return Err(SourceError::on(&self.path, errno)),
            }
        };
        serde_json::from_slice(&self.buffer[..length])
            .map_err(|error| SourceError::on(&self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{accept, bind, listen};

    /// Answers on a telemetry socket as DPDK does: two ports that each count 1000 per question.
    fn fake_program(directory: &std::path::Path) -> std::thread::JoinHandle<()> {
        std::fs::create_dir(directory.join("pw")).unwrap();
        let listener = net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(directory.join("pw/dpdk_telemetry.v2")).unwrap())
            .unwrap();
        listen(&listener, 1).unwrap();
        std::thread::spawn(move || {
            let peer = accept(&listener).unwrap();
            let say = |text: String| net::send(&peer, text.as_bytes(), SendFlags::empty()).unwrap();
            say(r#"{"version":"DPDK 22.11","pid":1,"max_output_len":16384}"#.into());
            let mut counts = [0, 0];
            let mut buffer = vec![0; 1024];
            while let Ok((length @ 1.., _)) = net::recv(&peer, &mut buffer[..], RecvFlags::empty())
            {
                let question = std::str::from_utf8(&buffer[..length]).unwrap();
                match question.split_once(',') {
                    None => say(format!(r#"{{"{question}":[0,1]}}"#)),
                    Some((command, port)) => {
                        let count = &mut counts[port.parse::<usize>().unwrap()];
                        *count += 1000;
                        let fields = format!(r#""ipackets":1,"opackets":{count},"q_ipackets":[0]"#);
                        say(format!(r#"{{"{command}":{{{fields}}}}}"#))
                    }
                };
            }
        })
    }

    #[test]
    fn ports_are_added_up_and_an_unknown_field_is_answered_with_the_known_ones() {
        let directory = tempfile::tempdir().unwrap();
        let program = fake_program(directory.path());
        let mut source = Dpdk::new(directory.path().into(), "pw", "opackets".into());
        assert_eq!(source.read(&|| false).unwrap().value, 2000.0);
        assert_eq!(source.read(&|| false).unwrap().value, 4000.0);
        source.field = "nonsense".into();
        let Err(SourceError::Unreadable(why)) = source.read(&|| false) else { panic!() };
        assert!(why.contains("ipackets, opackets"), "{why}");
        drop(source);
        program.join().unwrap();
    }

    #[test]
    fn a_socket_that_is_not_there_is_named() {
        let mut source = Dpdk::new("/nonexistent".into(), "pw", "opackets".into());
        let Err(SourceError::Unreadable(why)) = source.read(&|| false) else { panic!() };
        assert!(why.contains("/nonexistent/pw/dpdk_telemetry.v2"), "{why}");
    }
}
