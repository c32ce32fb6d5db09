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
        text.push_str(&format!("  {:<12} {}\n", one_line(role), one_line(&names.join(" "))));
    }
    text
}
