//! The plan: the part of an outcome that can be stored and applied. It says which thread runs on
//! which CPUs, and on which machine that was found. It also has the number of threads, if that was
//! asked.
//!
//! A plan is a small TOML file that people read, edit and keep with their configuration. CPUs are
//! the kernel's numbers, so it means nothing on another machine. It was made for the machine of
//! [`Plan::machine`].

mod difference;
mod error;
mod identity;

pub use difference::{MachineCondition, PlanDifference};
pub use error::PlanError;
use error::malformed;

use crate::{Estimate, Outcome, PlacementVerdict};
use pinwise_campaign::CampaignIdentity;
use pinwise_measure::{MOST_THREADS, MemoryPolicy, Unit, Workload, values_or_text};
use pinwise_topology::{CpuSet, Fingerprint, Machine, SharingTree};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The version of the file format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// The longest text that is read, in bytes: some 50,000 threads. TOML takes many times the memory
/// of its text.
const LONGEST: usize = 4 << 20;

/// The head of the file.
const HEADER: &str = concat!(
    "# A pinwise plan: on which CPUs each thread of a program runs.\n",
    "#   pinwise apply PLAN --pid PID       re-pins the program while it runs\n",
    "#   pinwise run PLAN -- COMMAND        starts it pinned; {n} in COMMAND becomes the plan's ",
    "number of threads, where it has one\n",
    "#   pinwise export PLAN --to FORMAT    says the same to other tools\n",
    "# Threads are found by their name; name#2 is the third thread of that name, in order of ",
    "creation.\n",
);

/// A placement for a program on one machine, as a small TOML file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the format: 1.
    version: u32,
    /// The command or the name of the program.
    pub program: String,
    /// True: the numbers in names count ended threads too. `pigz#2` is the third thread of that
    /// name that a run creates. A search that starts the program for each measurement counts so.
    /// False: they count living threads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_ended_threads: bool,
    /// The search that found it; absent from a plan that was written otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<PlanOrigin>,
    /// The measurements. They inform the reader; nothing depends on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<PlanEvidence>,
    /// How many threads the program is to have; absent if that was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<PlannedNumber>,
    /// Where its memory is to lie; absent if that is left to the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<PlannedMemory>,
    /// The machine it was found on.
    pub machine: Fingerprint,
    /// The threads, in the order of their creation. None: they are left to the operating system,
    /// and the plan is its number.
    #[serde(rename = "thread", default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<PlannedThread>,
}

/// The search that found a plan, and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanOrigin {
    /// The campaign of that search; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "identity::read")]
    pub campaign: Option<CampaignIdentity>,
    /// Whether pinning is better than leaving the threads to the operating system.
    #[serde(alias = "advice")]
    pub verdict: PlacementVerdict,
    /// The machine is a model: no real machine has its CPUs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Notes in addition to the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "values_or_text")]
    pub notes: Vec<PlanNote>,
}

/// Something to know about the search that found a plan. Information, nothing depends on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanNote {
    /// Its kind, as in JSON.
    pub kind: String,
    /// The sentence.
    pub text: String,
    /// The values of that kind.
    #[serde(flatten)]
    pub values: toml::Table,
}

impl PlanNote {
    /// From a note as JSON has it: an object with `kind`, `text` and values.
    pub fn new(note: &serde_json::Value) -> Self {
        let text = |field: &str| note[field].as_str().unwrap_or_default().to_owned();
        let values = note.as_object().into_iter().flatten();
        let values = values.filter(|(name, _)| !["kind", "text"].contains(&name.as_str()));
        // TOML has no null: a value that is not known is absent.
        let values = values
            .filter_map(|(name, value)| Some((name.clone(), toml::Value::try_from(value).ok()?)));
        Self { kind: text("kind"), text: text("text"), values: values.collect() }
    }

    /// Kinds that explain a result, or concern its bound alone. They do not weaken it.
    pub const EXPLAINING: [&str; 17] = [
        "drift",
        "default_assumed",
        "default_inferred",
        "single_runs",
        "short_runs",
        "cut_off",
        "translated",
        "set",
        "limits_restored",
        "metric_read",
        "lines_added",
        "left_alone",
        "keeps_to",
        "pieces",
        // Fresh windows decide, and they do not need this.
        "watched_otherwise",
        "memory_remote",
        "memory_not_returned",
    ];

    /// Whether it weakens the result.
    pub fn weakens(&self) -> bool {
        // A note about a placed number has the real kind inside.
        let within = self.values.get("note").and_then(|note| note.get("kind"));
        let kind = within.and_then(toml::Value::as_str).unwrap_or(&self.kind);
        !Self::EXPLAINING.contains(&kind)
    }
}

/// A note of an earlier version, a sentence.
impl From<String> for PlanNote {
    fn from(text: String) -> Self {
        Self { kind: "text".to_owned(), text, values: toml::Table::new() }
    }
}

/// How a program gets its number of threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedNumber {
    /// The number that takes the place of `{n}` in the program's arguments, at least 1. It is the
    /// number of threads, or the number from which that follows.
    pub n: u32,
    /// Environment variables to start it with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The command that sets the number in a running program; `pinwise apply --set` runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
}

impl PlannedNumber {
    /// The text that stands for the number in a command line.
    pub const PLACE: &str = "{n}";

    /// What no program can be started with is refused before one is.
    fn check(&self) -> Result<(), PlanError> {
        match self.n {
            0 => return Err(PlanError::NoNumber),
            n if n > MOST_THREADS => return Err(PlanError::Number(n, MOST_THREADS)),
            _ => {}
        }
        // environ(7): texts that end in NUL, in which the first `=` ends the name.
        let impossible = |(name, value): &(&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        if let Some((name, _)) = self.environment.iter().find(impossible) {
            return Err(PlanError::Environment(name.escape_default().to_string()));
        }
        if self.set.as_ref().is_some_and(|command| command.contains('\0')) {
            return Err(PlanError::Set);
        }
        Ok(())
    }

    /// `word` of a command line with the number in its place.
    pub fn fill(&self, word: &str) -> String {
        word.replace(Self::PLACE, &self.n.to_string())
    }

    /// The environment variables that say more than the number, by name. They can make a program
    /// run other code, and a plan may come from somebody else. A variable is among them if its
    /// value is not n. It is, too, if its name ends as those of paths and of start-up files do. The
    /// names are known ones: they prove nothing.
    pub fn beyond_number(&self) -> impl Iterator<Item = (&str, &str)> {
        let n = self.n.to_string();
        const ENDS: [&str; 6] = ["PATH", "ENV", "LIB", "HOME", "OPT", "STARTUP"];
        let loads =
            |name: &str| name.starts_with("LD_") || ENDS.iter().any(|end| name.ends_with(end));
        let variables = self.environment.iter().map(|(name, value)| (&**name, &**value));
        variables.filter(move |(name, value)| *value != n || loads(name))
    }
}

/// Where the memory of a program is to lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedMemory {
    /// How it gets there.
    pub policy: MemoryPolicy,
    /// The nodes: with [`MemoryPolicy::Follow`] those of the plan's CPUs.
    pub nodes: BTreeSet<u32>,
}

impl PlannedMemory {
    /// The memory of threads on `cpus`. `None`: it is left to the operating system.
    pub fn new(policy: MemoryPolicy, machine: &Machine, cpus: &CpuSet) -> Option<Self> {
        let nodes = match policy {
            MemoryPolicy::Leave => return None,
            MemoryPolicy::Follow => machine.nearest_memory(cpus),
            MemoryPolicy::Interleave => machine.memory_nodes(),
        };
        Some(Self { policy, nodes })
    }
}

/// One thread and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedThread {
    /// Its `comm`, with `#` and its creation order if several share one.
    pub name: String,
    /// Its role.
    pub role: String,
    /// Which instance of the application it belongs to, counted from 0.
    pub instance: usize,
    /// The CPUs on which it may run, by the kernel's numbers.
    pub cpus: CpuSet,
}

/// The measurements, in the unit the user asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanEvidence {
    /// The unit of the performances.
    pub unit: String,
    /// Mean of the fresh measurements of this placement.
    pub performance: f64,
    /// Its interval; absent from a single measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The confidence of the interval.
    pub confidence: f64,
    /// The number of fresh measurements of this placement.
    pub measurements: usize,
    /// Mean of the unpinned baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// The end of the bound on the best possible performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

impl Plan {
    /// A plan for threads with their CPUs.
    pub fn new(
        program: impl Into<String>,
        machine: Fingerprint,
        threads: Vec<PlannedThread>,
    ) -> Self {
        Self {
            version: VERSION,
            program: program.into(),
            counts_ended_threads: false,
            origin: None,
            measured: None,
            number: None,
            memory: None,
            machine,
            threads,
        }
    }

    /// The plan of an outcome: its best assignment, whatever the verdict is. `None` if nothing
    /// could be measured.
    pub fn from_outcome(
        workload: &Workload,
        tree: &SharingTree,
        machine: Fingerprint,
        outcome: &Outcome,
    ) -> Option<Self> {
        let best = outcome.best.as_ref()?;
        let place = |(thread, &leaf): (&pinwise_measure::Thread, &u32)| {
            let cpu = *tree.leaves().get(leaf as usize)?;
            Some(PlannedThread {
                name: thread.name.clone(),
                role: thread.role.clone(),
                instance: thread.instance,
                cpus: [cpu].into_iter().collect(),
            })
        };
        let threads = workload
            .threads
            .iter()
            .zip(best.assignment.leaves())
            .map(place)
            .collect::<Option<Vec<_>>>()?;
        let bound = outcome.bound.upb_high.map(|bound| outcome.unit.quantity(bound));
        let measured = PlanEvidence {
            bound,
            ..PlanEvidence::new(&outcome.unit, &best.performance, outcome.baseline.as_ref())
        };
        Some(Self { measured: Some(measured), ..Self::new(&workload.name, machine, threads) })
    }

    /// Reads a plan.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        /// Reads only the version: a newer plan may have fields that are unknown here.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        if text.len() > LONGEST {
            return Err(PlanError::Long(LONGEST >> 20));
        }
        if !text.lines().any(|line| line.trim_start().starts_with("version")) {
            return Err(PlanError::NoPlan);
        }
        let versioned: Versioned = toml::from_str(text).map_err(|error| malformed(text, &error))?;
        if versioned.version != VERSION {
            return Err(PlanError::Version(versioned.version));
        }
        let plan: Self = toml::from_str(text).map_err(|error| malformed(text, &error))?;
        match &plan.number {
            None if plan.threads.is_empty() => return Err(PlanError::Empty),
            Some(number) => number.check()?,
            None => {}
        }
        if plan.memory.as_ref().is_some_and(|memory| memory.nodes.is_empty()) {
            return Err(PlanError::NoNodes);
        }
        let mut names = HashSet::new();
        for thread in &plan.threads {
            if !names.insert(&thread.name) {
                return Err(PlanError::SameName(thread.name.clone()));
            }
            if thread.cpus.is_empty() {
                return Err(PlanError::NoCpus(thread.name.clone()));
            }
        }
        Ok(plan)
    }

    /// The file's text.
    pub fn to_toml(&self) -> String {
        // The fields are numbers, texts, lists and tables with text keys: TOML has all of these.
        let body = toml::to_string(self).unwrap_or_default();
        format!("{HEADER}\n{body}")
    }

    /// All CPUs that some thread uses.
    pub fn cpus(&self) -> CpuSet {
        self.threads.iter().flat_map(|thread| thread.cpus.iter()).collect()
    }
}

impl PlanEvidence {
    /// The figures of the plan, and of the program without it. There is no bound.
    pub fn new(unit: &Unit, best: &Estimate, baseline: Option<&Estimate>) -> Self {
        let interval = match unit.interval(best.low, best.high) {
            [Some(low), Some(high)] => Some([low, high]),
            _ => None,
        };
        Self {
            unit: unit.name.clone(),
            performance: unit.quantity(best.mean),
            interval,
            confidence: best.confidence,
            measurements: best.n,
            baseline: baseline.map(|baseline| unit.quantity(baseline.mean)),
            bound: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let thread = |name: &str, role: &str, cpus: &str| PlannedThread {
            name: name.into(),
            role: role.into(),
            instance: 0,
            cpus: CpuSet::parse_list(cpus).unwrap(),
        };
        let machine = Fingerprint {
            kernel: Some("6.1.0-18-amd64".into()),
            smt: Some("on".into()),
            ..Fingerprint::of(&Machine::from_shape("2x2x2").unwrap())
        };
        let threads = vec![
            thread("ipfwd0-R", "R", "1"),
            thread("ipfwd0-P", "P", "2-4"),
            thread("x#0", "x", "7"),
        ];
        let measured = PlanEvidence {
            unit: "packets/s".into(),
            performance: 1.25e6,
            interval: Some([1.2e6, 1.3e6]),
            confidence: 0.95,
            measurements: 12,
            baseline: Some(1e6),
            bound: None,
        };
        Plan { measured: Some(measured), ..Plan::new("ipfwd", machine, threads) }
    }

    fn campaign() -> CampaignIdentity {
        let number = pinwise_campaign::CampaignId(12);
        CampaignIdentity { store: "a, b.db".into(), number, started: 1_790_000_000 }
    }

    #[test]
    fn a_plan_says_where_memory_lies_if_that_is_not_left_to_the_system() {
        let machine = Machine::from_shape("numa:2 core:2").unwrap();
        let cpus = CpuSet::parse_list("3").unwrap();
        let memory = |policy| PlannedMemory::new(policy, &machine, &cpus);
        assert_eq!(memory(MemoryPolicy::Leave), None);
        for (policy, nodes) in [("follow", "[1]"), ("interleave", "[0, 1]")] {
            let of =
                if policy == "follow" { MemoryPolicy::Follow } else { MemoryPolicy::Interleave };
            let placed = Plan { memory: memory(of), ..plan() };
            let text = placed.to_toml();
            let table = format!("[memory]\npolicy = \"{policy}\"\nnodes = {nodes}\n");
            assert!(text.contains(&table), "{text}");
            assert_eq!(Plan::parse(&text), Ok(placed));
            let none = text.replace(&format!("nodes = {nodes}"), "nodes = []");
            assert_eq!(Plan::parse(&none), Err(PlanError::NoNodes));
        }
    }

    #[test]
    fn a_plan_names_its_campaign_in_a_table_and_earlier_ones_in_a_sentence() {
        let origin = |campaign| {
            let (verdict, simulated, notes) = (PlacementVerdict::Pin, false, Vec::new());
            Some(PlanOrigin { campaign, verdict, simulated, notes })
        };
        let whole = Plan { origin: origin(Some(campaign())), ..plan() };
        let text = whole.to_toml();
        let table = "[origin.campaign]\nstore = \"a, b.db\"\nnumber = 12\nstarted = 1790000000\n";
        assert!(text.contains(table), "{text}");
        assert_eq!(Plan::parse(&text), Ok(whole.clone()));
        let plain = text.replace(table, "");
        let of = |words: &str| {
            let line = format!("[origin]\ncampaign = {words}");
            let read = Plan::parse(&plain.replace("[origin]", &line)).map(|plan| plan.origin);
            read.map_err(|error| error.to_string())
        };
        let sentence = "campaign 12 of a, b.db, begun 2026-09-21 14:13 UTC (1790000000)";
        assert_eq!(of(&format!("\"{sentence}\"")), Ok(whole.origin));
        for other in ["", "campaign 12 of a.db", "campaign x of a.db, begun (1)", "mine"] {
            assert_eq!(of(&format!("\"{other}\"")), Ok(origin(None)), "{other}");
        }
        for (table, reason) in [
            ("{ store = \"a.db\", number = 1, begun = 3 }", "unknown field `begun`"),
            ("{ store = \"a.db\", number = 1 }", "missing field `started`"),
            ("12", "invalid type"),
        ] {
            let error = of(table).unwrap_err();
            assert!(error.contains(reason) && error.contains("column"), "{table}: {error}");
        }
    }

    fn busy() -> PlanNote {
        let note = serde_json::json!({
            "kind": "busy", "share": 0.5, "of": null, "text": "The machine was busy."
        });
        PlanNote::new(&note)
    }

    #[test]
    fn notes_have_kind_values_and_text_and_earlier_ones_are_sentences() {
        let origin = |notes| {
            let (verdict, simulated, campaign) = (PlacementVerdict::Pin, false, None);
            Some(PlanOrigin { campaign, verdict, simulated, notes })
        };
        let whole = Plan { origin: origin(vec![busy()]), ..plan() };
        let text = whole.to_toml();
        let table =
            "[[origin.notes]]\nkind = \"busy\"\ntext = \"The machine was busy.\"\nshare = 0.5\n";
        assert!(text.contains(table), "{text}");
        assert_eq!(Plan::parse(&text), Ok(whole));
        let old =
            text.replace(table, "").replace("[origin]", "[origin]\nnotes = [\"It was busy.\"]");
        let notes = vec![PlanNote::from("It was busy.".to_owned())];
        assert_eq!(Plan::parse(&old).unwrap().origin, origin(notes));
    }

    #[test]
    fn a_plan_reads_back_as_it_was_written() {
        let text = plan().to_toml();
        assert!(text.starts_with("# A pinwise plan"), "{text}");
        assert_eq!(Plan::parse(&text), Ok(plan()));
        let bare = Plan { measured: None, ..plan() };
        assert_eq!(Plan::parse(&bare.to_toml()), Ok(bare));
    }

    #[test]
    fn a_note_that_explains_does_not_weaken() {
        let noted = |note| {
            PlanNote::new(&serde_json::json!({ "kind": "while_placed", "numbers": [4],
            "note": { "kind": note }, "text": "While n = 4 was placed, something." }))
        };
        assert_eq!(["left_alone", "busy"].map(|kind| noted(kind).weakens()), [false, true]);
    }

    #[test]
    fn a_number_goes_with_threads_and_without() {
        let environment = BTreeMap::from([("OMP_NUM_THREADS".to_owned(), "6".to_owned())]);
        let number =
            Some(PlannedNumber { n: 6, environment, set: Some("echo 6 > workers".into()) });
        let both = Plan { number: number.clone(), ..plan() };
        assert_eq!(Plan::parse(&both.to_toml()), Ok(both));
        let free = Plan { threads: Vec::new(), measured: None, number, ..plan() };
        assert_eq!(Plan::parse(&free.to_toml()), Ok(free.clone()));
        assert_eq!(free.number.unwrap().fill("-p{n}"), "-p6");
    }

    #[test]
    fn a_variable_says_more_than_the_number_if_its_value_or_name_does() {
        let variables = [
            ("OMP_NUM_THREADS", "6"),
            ("GOMAXPROCS", "7"),
            ("JAVA_TOOL_OPTIONS", "-XX:ActiveProcessorCount=6"),
            ("LD_PRELOAD", "6"),
            ("BASH_ENV", "6"),
            ("PATH", "6"),
        ];
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let number = PlannedNumber { n: 6, environment, set: None };
        let names: Vec<&str> = number.beyond_number().map(|(name, _)| name).collect();
        assert_eq!(names, ["BASH_ENV", "GOMAXPROCS", "JAVA_TOOL_OPTIONS", "LD_PRELOAD", "PATH"]);
    }

    #[test]
    fn bad_plans_are_refused_in_one_line_that_says_where() {
        let text = plan().to_toml();
        for (from, to, expected) in [
            ("version = 1", "version = 2", "plan version 2"),
            ("version = 1", "", "this is no plan: name a file that"),
            ("version = 1", "version = \"one\"", "line 7, column 11: invalid type"),
            ("program = ", "programme = ", "line 8, column 1: unknown field `programme`"),
            (
                "cpus = \"2-4\"",
                "cpus = \"4-2\"",
                "'4-2' is not a CPU set: a range that ends before it begins",
            ),
            ("cpus = \"2-4\"", "cpus = \"\"", "thread 'ipfwd0-P' has no CPUs"),
            ("cpus = \"2-4\"", "cpus = \"2-4", "line 3"),
            ("ipfwd0-P", "ipfwd0-R", "two threads are called 'ipfwd0-R'"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Plan::parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(expected), "{from} -> {to}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let none = Plan { threads: Vec::new(), ..plan() };
        assert_eq!(Plan::parse(&none.to_toml()), Err(PlanError::Empty));
        let number = PlannedNumber { n: 0, environment: BTreeMap::new(), set: None };
        assert_eq!(
            Plan::parse(&Plan { number: Some(number), ..plan() }.to_toml()),
            Err(PlanError::NoNumber)
        );
        let free = |name: &str, value: &str, set: Option<&str>, n| {
            let environment = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let number = Some(PlannedNumber { n, environment, set: set.map(str::to_owned) });
            Plan::parse(&Plan { number, ..plan() }.to_toml()).map(drop)
        };
        assert_eq!(free("A", "", Some("true"), MOST_THREADS), Ok(()));
        let most = Err(PlanError::Number(99_999_999, MOST_THREADS));
        assert_eq!(free("A", "6", None, 99_999_999), most);
        for (name, value) in [("A", "6\0"), ("A\0", "6"), ("A=B", "6"), ("", "6")] {
            let error = PlanError::Environment(name.replace('\0', "\\u{0}"));
            assert_eq!(free(name, value, None, 6), Err(error), "{name:?} {value:?}");
        }
        assert_eq!(free("A", "6", Some("echo\0"), 6), Err(PlanError::Set));
        let long = format!("{text}#{}", " ".repeat(LONGEST));
        assert_eq!(Plan::parse(&long), Err(PlanError::Long(4)));
        assert_eq!(Plan::parse(""), Err(PlanError::NoPlan));
        assert!(Plan::parse("\u{1}\u{ff}[").is_err());
    }
}
