//! Loads a local memcached: `memcached_load PORT CONNECTIONS SECONDS`. Used by the benchmarks.

use pinwise_synthetic::load;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, connections, seconds] = words.as_slice() else {
        return Err("usage: memcached_load PORT CONNECTIONS SECONDS".into());
    };
    let seconds: u64 = seconds.parse()?;
    let answered = load::memcached(
        port.parse()?,
        connections.parse()?,
        Duration::from_secs(seconds),
        &Arc::default(),
    )?;
    println!("{answered} commands answered, {} per second", answered / seconds.max(1));
    Ok(())
}
