//! pinwise on clusters that this test starts on this host: Slurm with four nodes, and four hosts
//! behind an sshd.

mod alike;
mod cluster;
mod daemons;
mod harness;
mod numbers;
mod place;
mod slurm;
mod ssh;
#[path = "../support/mod.rs"]
mod support;
