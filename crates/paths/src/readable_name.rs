//! The name of a function as its source has it.
//!
//! Compilers of C++ and Rust *mangle* names: the symbol has the scope, and the types of C++. Rules:
//! the Itanium C++ ABI, section 5.1, and Rust RFC 2603. Names of C++ come without parameters, as
//! `perf report` shows them. Names of Rust come without the hash.

use std::fmt::{self, Write as _};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// A longer name, in bytes, stays as the symbol has it. Substitutions make a short symbol long.
const LONGEST_NAME: usize = 4096;
/// Symbols may nest so deep. Each level takes about a kilobyte of the stack.
const DEEPEST: u32 = 96;

/// The name that a symbol stands for. The symbol itself, if it is not mangled.
pub fn readable_name(symbol: &str) -> String {
    if symbol.len() > LONGEST_NAME {
        return symbol.to_owned();
    }
    let mut name = BoundedName::default();
    // The older names of Rust are also names of C++: they end with a hash.
    let is_whole = match rustc_demangle::try_demangle(symbol) {
        Ok(rust) => fmt::write(&mut name, format_args!("{rust:#}")).is_ok(),
        Err(_) => of_cpp(symbol, &mut name).is_some(),
    };
    if is_whole { name.0 } else { symbol.to_owned() }
}

fn of_cpp(symbol: &str, name: &mut BoundedName) -> Option<()> {
    // Other words are types: a function of C named `i` is no `int`.
    if !symbol.starts_with("_Z") && !symbol.starts_with("_GLOBAL_") {
        return None;
    }
    // A compiler marks parts and copies of a function, as in `.cold` and `.constprop.0`.
    let (stem, copy) = symbol.split_at(symbol.find('.').unwrap_or(symbol.len()));
    let limit = ParseOptions::default().recursion_limit(DEEPEST);
    let parsed = BorrowedSymbol::new_with_options(stem.as_bytes(), &limit).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(DEEPEST);
    parsed.structured_demangle(name, &options).ok()?;
    if copy.is_empty() { Some(()) } else { write!(name, " [clone {copy}]").ok() }
}

/// A name that refuses to grow too long.
#[derive(Default)]
struct BoundedName(String);

impl fmt::Write for BoundedName {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_cpp_and_rust_are_those_of_the_source_and_others_stay() {
        for (symbol, name) in [
            ("main", "main"),
            ("i", "i"),
            ("_start", "_start"),
            (
                "_ZN4json6Parser5parseERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                "json::Parser::parse",
            ),
            (
                "_ZSt4swapIiENSt9enable_ifIXsr6__and_ISt6__not_ISt15__is_tuple_likeIT_EE\
                 St21is_move_constructibleIS3_ESt18is_move_assignableIS3_EEE\
                 5valueEvE4typeERS3_SC_",
                "std::swap<int>",
            ),
            ("_ZN8grep_cli3run17h05af221e174051e9E", "grep_cli::run"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_ZN3foo3barEv.cold", "foo::bar [clone .cold]"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(readable_name(symbol), name);
        }
    }

    #[test]
    fn a_short_symbol_of_a_very_long_name_stays() {
        // Each pair doubles the type before it.
        let mut symbol = "_Z1fI1AIiiE".to_owned();
        for pair in 0..12 {
            symbol += &format!("1BIS{0}_S{0}_E", char::from(b'0' + (pair % 10) as u8));
        }
        symbol += "Evv";
        assert!(readable_name(&symbol).len() <= LONGEST_NAME);
    }

    proptest! {
        #[test]
        fn any_symbol_has_a_bounded_name(symbol in "(_Z|_R|_ZN|)[A-Za-z0-9_$.]{0,60}") {
            prop_assert!(readable_name(&symbol).len() <= LONGEST_NAME);
        }
    }
}
