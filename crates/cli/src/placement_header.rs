//! What a placement campaign shows before its first measurement.

use pinwise_campaign::{CampaignInfo, Kind, NewCampaign};
use pinwise_present::{figures, one_line};

/// What is known before the first measurement: the machine, the threads by role, the campaign.
pub(crate) fn placement_header(info: &CampaignInfo) -> String {
    let CampaignInfo { id, new, .. } = info;
    // A number without a unit might be read as seconds.
    let budget = pinwise_jobs::measurement_budget(info).map_or(String::new(), |most| {
        let each = if new.kind == Kind::Compare { " a search" } else { "" };
        format!(", budget {}{each}", figures::counted(most, "measurement"))
    });
    format!("{}campaign {}, seed {}{budget}\n\n", subject(new), id.0, new.seed)
}

/// What is placed where.
fn subject(new: &NewCampaign) -> String {
    let machine = &new.machine;
    let contexts = figures::counted(machine.allowed.len() as u64, "context");
    let mut text =
        format!("{}: {contexts} allowed ({})\n", one_line(&machine.name), machine.allowed);
    let threads = &new.workload.threads;
    let to_place = figures::counted(threads.len() as u64, "thread");
    text.push_str(&format!("{}: {to_place} to place\n", one_line(&new.workload.name)));
    let mut roles: Vec<&str> = threads.iter().map(|thread| thread.role.as_str()).collect();
    roles.sort_unstable();
    roles.dedup();
    for role in roles {
        let names: Vec<&str> = threads
            .iter()
            .filter(|thread| thread.role == role)
            .map(|thread| thread.name.as_str())
            .collect();
        text.push_str(&format!("  {:<12} {}\n", one_line(role), one_line(&listed(&names))));
    }
    text
}

/// Names that are listed in full.
const MOST_NAMES: usize = 64;

/// All names, or the first and the last of many.
fn listed(names: &[&str]) -> String {
    match names {
        [first, second, .., last] if names.len() > MOST_NAMES => {
            format!("{first} {second} … {last} ({})", figures::group(&names.len().to_string()))
        }
        _ => names.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_first_and_the_last_are_listed() {
        let names: Vec<String> = (1..=2_000).map(|number| format!("busy#{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(listed(&names[..3]), "busy#1 busy#2 busy#3");
        assert_eq!(listed(&names), "busy#1 busy#2 … busy#2000 (2,000)");
    }
}
