//! A load for memcached: pipelined gets and a few sets over loopback. Connections are bounded in
//! number, and it runs for a bounded time or until it is stopped.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Commands sent before their answers are read.
const PIPELINE: usize = 32;

/// Loads the server on `port` from `connections` threads for `time`, or until `stop` is raised;
/// gives the commands answered.
pub fn memcached(
    port: u16,
    connections: usize,
    time: Duration,
    stop: &Arc<AtomicBool>,
) -> std::io::Result<u64> {
    let end = Instant::now() + time;
    let client = |client| {
        let stop = Arc::clone(stop);
        thread::spawn(move || client_loop(port, client, end, &stop))
    };
    let clients: Vec<_> = (0..connections).map(client).collect();
    let mut answered = 0;
    for client in clients {
        answered += client.join().map_err(|_| std::io::Error::other("a client panicked"))??;
    }
    Ok(answered)
}

fn client_loop(port: u16, client: usize, end: Instant, stop: &AtomicBool) -> std::io::Result<u64> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut batch = Vec::new();
    for command in 0..PIPELINE {
        let key = format!("key{}", (client * PIPELINE + command) % 512);
        match command % 8 {
            0 => write!(batch, "set {key} 0 0 16\r\n0123456789abcdef\r\n")?,
            _ => write!(batch, "get {key}\r\n")?,
        }
    }
    let mut buffer = [0u8; 65536];
    let mut answered = 0;
    while !stop.load(Ordering::Relaxed) && Instant::now() < end {
        stream.write_all(&batch)?;
        // Every command is answered by exactly one line that begins with STORED or END.
        let mut answers = 0;
        let mut tail = Vec::new();
        while answers < PIPELINE {
            let length = stream.read(&mut buffer)?;
            if length == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            tail.extend_from_slice(&buffer[..length]);
            let complete = tail.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
            let lines = tail[..complete].split(|&byte| byte == b'\n');
            answers += lines
                .filter(|line| line.starts_with(b"STORED") || line.starts_with(b"END"))
                .count();
            tail.drain(..complete);
        }
        answered += PIPELINE as u64;
    }
    Ok(answered)
}
