//! The part of an outcome that can be kept and applied.

/// A placement for a program on one machine, as a small TOML file.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {}
