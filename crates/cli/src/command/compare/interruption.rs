//! What a comparison leaves that the user ended.

use crate::command::place;
use crate::output::Interrupted;
use pinwise_campaign::{CampaignId, NewCampaign};
use pinwise_present::{Files, shell};
use std::path::Path;

/// What there is where the user ended a search, `done` of them having ended before, how to see it,
/// and what to do: what compares them is made last, so that there is nothing to go on with but that
/// search by itself.
pub(super) fn searches_kept(
    done: usize,
    begun: Option<(CampaignId, usize)>,
    named: Option<&Path>,
    new: &NewCampaign,
) -> String {
    let flag = Files { plan: None, store: named }.flag();
    let again =
        format!("nothing is compared yet, and a comparison begins anew: {}", shell(&new.command));
    let searches = if done == 1 { "search is" } else { "searches are" };
    let ended = format!("{done} {searches} kept, see: pinwise campaign list{flag}");
    let this = begun.map(|(CampaignId(id), measurements)| {
        let kept = place::kept(measurements);
        format!("of this search {kept}, go on with it alone: pinwise campaign resume {id}{flag}")
    });
    let ended = (done > 0).then_some(ended);
    if ended.is_none() && this.is_none() {
        return "nothing is kept".to_owned();
    }
    ended.into_iter().chain(this).chain([again]).collect::<Vec<_>>().join("; ")
}

/// The user ended it, with what is `kept`.
pub(super) fn interrupted(kept: &str) -> Interrupted {
    Interrupted(format!("interrupted: what was pinned is as it was; {kept}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::{Unit, Workload};
    use pinwise_topology::{Alike, Machine};

    #[test]
    fn an_interrupted_comparison_says_what_is_kept_and_how_to_go_on() {
        let store = Some(Path::new("a b.db"));
        let new = NewCampaign {
            kind: pinwise_campaign::Kind::Compare,
            parent: None,
            command: ["pinwise", "compare", "--", "./a b"].map(String::from).to_vec(),
            machine: Machine::from_shape("2").unwrap(),
            alike: Alike::ByStructure,
            workload: Workload { name: "a".into(), threads: Vec::new() },
            unit: Unit::rate("1/s"),
            question: serde_json::Value::Null,
            seed: 1,
        };
        let again =
            "nothing is compared yet, and a comparison begins anew: pinwise compare -- './a b'";
        let told = |done, begun, named| searches_kept(done, begun, named, &new);
        assert_eq!(told(0, None, None), "nothing is kept");
        assert_eq!(
            told(0, Some((CampaignId(1), 20)), store),
            format!(
                "of this search 20 measurements are kept, go on with it alone: pinwise campaign resume 1 --store 'a b.db'; {again}"
            )
        );
        assert_eq!(
            told(1, None, None),
            format!("1 search is kept, see: pinwise campaign list; {again}")
        );
        assert_eq!(
            told(2, Some((CampaignId(7), 1)), None),
            format!(
                "2 searches are kept, see: pinwise campaign list; of this search 1 measurement is kept, go on with it alone: pinwise campaign \
                 resume 7; {again}"
            )
        );
    }
}
