//! The program with several numbers, kept ready between measurements.

use super::crew::Crew;
use pinwise_jobs::Bed;

/// What stands ready to be measured, by n; `None`: as nobody decides it.
#[derive(Default)]
pub(super) struct Beds(Vec<(Option<u32>, Bed)>);

impl Beds {
    /// Whether the program stands ready with `n`.
    pub(super) fn has(&self, n: Option<u32>) -> bool {
        self.0.iter().any(|(open, _)| *open == n)
    }

    /// The program with `n`; `known` are the threads that have places. One that goes on running has
    /// one number at a time: the others end.
    pub(super) fn get(
        &mut self,
        crew: &mut Crew<'_>,
        n: Option<u32>,
        known: &[String],
    ) -> anyhow::Result<&mut Bed> {
        let place = match self.0.iter().position(|(open, _)| *open == n) {
            Some(place) => place,
            None => {
                if !crew.starts_anew() {
                    self.end();
                }
                self.0.push((n, crew.open(n, known)?));
                self.0.len() - 1
            }
        };
        Ok(&mut self.0[place].1)
    }

    /// Ends all of them, and puts back what they changed.
    pub(super) fn end(&mut self) {
        self.0.clear();
    }
}
