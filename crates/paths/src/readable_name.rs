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

    /// The symbol and the name of a function of types. Each is a pair of earlier types, so many
    /// before the last.
    fn of_pairs(pairs: &[[usize; 2]]) -> (String, String) {
        let (mut symbol, mut types) = ("_Z1fI1AIiiE".to_owned(), vec!["A<int, int>".to_owned()]);
        for (pair, class) in pairs.iter().zip('B'..='Z') {
            let [one, other] = pair.map(|back| (types.len() - 1).saturating_sub(back));
            // `S_` is the function, `S0_` the class `A`, and `S1_` the first type.
            let reference = |of: usize| {
                let digit = char::from_digit(2 * of as u32 + 1, 36).unwrap();
                format!("S{}_", digit.to_ascii_uppercase())
            };
            symbol += &format!("1{class}I{}{}E", reference(one), reference(other));
            types.push(format!("{class}<{}, {}>", types[one], types[other]).replace(">>", "> >"));
        }
        (symbol + "Evv", format!("f<{}>", types.join(", ")).replace(">>", "> >"))
    }

    #[test]
    fn a_short_symbol_of_a_very_long_name_stays() {
        let (symbol, name) = of_pairs(&[[0, 0]; 6]);
        assert_eq!(readable_name(&symbol), name);
        let (symbol, name) = of_pairs(&[[0, 0]; 7]);
        assert!(symbol.len() < 100 && name.len() > LONGEST_NAME);
        assert_eq!(readable_name(&symbol), symbol);
    }

    proptest! {
        #[test]
        fn a_name_is_whole_or_the_symbol_stays(
            pairs in prop::collection::vec(prop::array::uniform2(0..2_usize), 0..16),
            place: prop::sample::Index,
            other in "[A-Za-z0-9_$.]",
        ) {
            let (symbol, name) = of_pairs(&pairs);
            let expected = if name.len() > LONGEST_NAME { &symbol } else { &name };
            prop_assert_eq!(&readable_name(&symbol), expected);
            // Also of a damaged symbol.
            let at = place.index(symbol.len());
            let damaged = format!("{}{other}{}", &symbol[..at], &symbol[at + 1..]);
            let name = readable_name(&damaged);
            prop_assert!(name == damaged || name.len() <= LONGEST_NAME);
        }
    }
}
