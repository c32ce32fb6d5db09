//! Intrusion detection by string matching: every packet's payload is searched for all [`KEYWORDS`]
//! at once.
//!
//! The automaton is that of Aho and Corasick (1975), built by the `aho-corasick` crate. It finds
//! all occurrences, also overlapping ones, and ASCII letters in either case, as signature sets
//! require.

use crate::frame::Layout;
use crate::hash;
use crate::keywords::KEYWORDS;
use crate::packet_work::{PacketAction, PacketWork, port_by_flow};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// The P thread of the string matcher.
pub(crate) struct Matcher {
    automaton: AhoCorasick,
    matches: u64,
    suspicious: u64,
}

impl Matcher {
    pub(crate) fn new() -> Self {
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(KEYWORDS)
            // The keywords are built in; a test builds the automaton.
            .expect("a few hundred short keywords fit into an automaton");
        Self { automaton, matches: 0, suspicious: 0 }
    }
}

impl PacketWork for Matcher {
    fn process(&mut self, frame: &[u8], layout: &Layout) -> PacketAction {
        let found = self.automaton.find_overlapping_iter(layout.payload(frame)).count() as u64;
        self.matches += found;
        self.suspicious += u64::from(found > 0);
        port_by_flow(hash::mix(
            hash::fold(layout.source(frame)) ^ hash::fold(layout.destination(frame)),
        ))
    }

    fn findings(&self) -> Vec<(&'static str, u64)> {
        vec![("keyword_matches", self.matches), ("suspicious_packets", self.suspicious)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;

    #[test]
    fn it_finds_what_looking_at_every_position_for_every_keyword_finds() {
        let traffic = Traffic::generate(9, 64, 600);
        let mut matcher = Matcher::new();
        let (mut matches, mut suspicious) = (0, 0);
        for n in 0..600 {
            let frame = traffic.frame(n);
            let layout = Layout::of(frame).unwrap();
            matcher.process(frame, &layout);
            let payload = layout.payload(frame);
            let found = KEYWORDS
                .iter()
                .flat_map(|keyword| {
                    payload
                        .windows(keyword.len())
                        .filter(|at| at.eq_ignore_ascii_case(keyword.as_bytes()))
                })
                .count() as u64;
            matches += found;
            suspicious += u64::from(found > 0);
        }
        assert_eq!(
            matcher.findings(),
            [("keyword_matches", matches), ("suspicious_packets", suspicious)]
        );
        assert!(suspicious > 20 && suspicious < 300, "{suspicious}");
    }
}
