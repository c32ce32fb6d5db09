//! The Metis tables as something to search in: a cell is an arm, measuring it is looking it up.

use crate::metis::{MetisProgram, MetisTable};
use pinwise_measure::MemoryPolicy;
use pinwise_threads::{Arm, JointSearch, Objective};
use pinwise_topology::Random;
use std::error::Error;
use std::path::PathBuf;

/// A machine of the tables. Its numbers are those of its `.mct` file: nodes, contexts and cores of
/// a package. The file also has the order in which the operating system numbers contexts. On
/// lpdquad context 4 is 135 cycles from 0, and 1 to 3 are 338: round the packages.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// As in the names of the files.
    pub name: &'static str,
    packages: u32,
    cores: u32,
    contexts: u32,
    round_packages: bool,
}

/// The machines with a table of every program.
pub const HOSTS: [Host; 2] = [
    Host { name: "lpdquad", packages: 4, cores: 12, contexts: 96, round_packages: true },
    Host { name: "lpdxeon2680", packages: 2, cores: 10, contexts: 40, round_packages: false },
];

/// Every third program of a table. Their figures stand apart from those of the others.
pub fn held_out(index: usize) -> bool {
    index % 3 == 2
}

/// The folder of the tables, or `None`, said plainly, if it is absent.
///
/// # Panics
/// With `CI=true`, if it is absent.
pub fn folder() -> Option<PathBuf> {
    pinwise_synthetic::shared_data("mctop")
}

/// Reads the table of `host`.
///
/// # Errors
/// Where the file cannot be read or is no Metis table.
pub fn table(host: Host, folder: &std::path::Path) -> Result<MetisTable, Box<dyn Error>> {
    Ok(MetisTable::parse(&std::fs::read_to_string(
        folder.join(format!("metis-{}.txt", host.name)),
    )?)?)
}

impl Host {
    /// Where a policy puts `threads`: G. Chatzopoulos, R. Guerraoui, T. Harris, V. Trigonakis,
    /// "Abstracting multi-core topologies with MCTOP", EuroSys 2017, table 2. `None` for an unknown
    /// policy.
    fn arm(self, policy: &str, threads: u32) -> Option<Arm> {
        let all = self.packages * self.cores;
        let per_core = self.contexts / all;
        // Packages filled with all contexts of their cores.
        let filled = threads.div_ceil(self.cores * per_core);
        let (packages, cores) = match policy {
            "NONE" | "BW_ROUND_ROBIN_CORES" => (self.packages.min(threads), threads.min(all)),
            "SEQUENTIAL" if self.round_packages => (self.packages.min(threads), threads.min(all)),
            "SEQUENTIAL" | "MIN_LAT_CORES" => {
                (threads.div_ceil(self.cores).min(self.packages), threads.min(all))
            }
            "MIN_LAT_HWCS" | "MIN_LAT_HWCS_BALANCE" => (filled, threads.div_ceil(per_core)),
            "MIN_LAT_CORES_HWCS_BALANCE" => (filled, threads.min(filled * self.cores)),
            "BW_ROUND_ROBIN_HWCS" => (self.packages.min(threads), threads.div_ceil(per_core)),
            _ => return None,
        };
        let free = policy == "NONE";
        Some(Arm { threads, cores, packages, free, memory: MemoryPolicy::Leave })
    }
}

/// One program's cells.
pub struct Cells {
    /// What a cell stands for: threads and where they run.
    pub arms: Vec<Arm>,
    /// By cell, the policy and the number of threads.
    pub names: Vec<(String, u32)>,
    /// By cell, the value to maximize.
    pub values: Vec<f64>,
    /// Everything left to the operating system, as many threads as contexts: what users get who do
    /// nothing.
    pub default: usize,
    contexts: u32,
}

impl Cells {
    /// All cells with a run of their own; impossible runs were left out by the reader. `None`
    /// without the default among them.
    pub fn new(host: Host, program: &MetisProgram, objective: Objective) -> Option<Self> {
        let mut cells = Self {
            arms: Vec::new(),
            names: Vec::new(),
            values: Vec::new(),
            default: usize::MAX,
            contexts: host.contexts,
        };
        for ((policy, threads), runs) in &program.cells {
            let (Some(run), Some(arm)) = (runs.first(), host.arm(policy, *threads)) else {
                continue;
            };
            let Some(value) = objective.value(1.0 / run.seconds, Some(run.watts)) else { continue };
            if policy == "NONE" && *threads == host.contexts {
                cells.default = cells.arms.len();
            }
            cells.arms.push(arm);
            cells.names.push((policy.clone(), *threads));
            cells.values.push(value);
        }
        (cells.default < cells.arms.len()).then_some(cells)
    }

    /// The most cells that may be measured.
    pub fn quarter(&self) -> usize {
        self.arms.len() / 4
    }

    /// Share by which the cell needs more than the best one (time, energy, ...).
    pub fn loss(&self, cell: usize) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max) / self.values[cell] - 1.0
    }

    /// What the search recommends from a quarter of the cells, the default first. `measure` may
    /// disturb a value.
    pub fn recommend(&self, measure: impl FnMut(f64) -> f64) -> usize {
        self.search(&[self.default], measure)
    }

    /// The same after all numbers were looked up unpinned. These look-ups count. `pinwise tune`
    /// begins in this way, with the search for the number alone.
    pub fn recommend_after_numbers(&self) -> usize {
        let free: Vec<usize> = (0..self.arms.len()).filter(|&cell| self.arms[cell].free).collect();
        self.search(&free, |value| value)
    }

    fn search(&self, first: &[usize], mut measure: impl FnMut(f64) -> f64) -> usize {
        let mut joint = JointSearch::new(&self.arms, self.contexts);
        let mut first = first.iter().copied();
        for _ in 0..self.quarter() {
            let Some(cell) = first.next().or_else(|| joint.next()) else { break };
            joint.observe(cell, measure(self.values[cell]), None);
        }
        joint.best()
    }

    /// The best of a quarter of the cells drawn at random: the losses of `times` draws.
    pub fn random_quarters(&self, times: usize, random: &mut Random) -> Vec<f64> {
        let mut cells: Vec<usize> = (0..self.arms.len()).collect();
        let losses = (0..times).map(|_| {
            random.shuffle(&mut cells);
            cells[..self.quarter()]
                .iter()
                .map(|&cell| self.loss(cell))
                .fold(f64::INFINITY, f64::min)
        });
        losses.collect()
    }

    /// The best number of threads where placement is left to the operating system.
    pub fn best_count(&self) -> f64 {
        let free = (0..self.arms.len()).filter(|&cell| self.arms[cell].free);
        free.map(|cell| self.loss(cell)).fold(f64::INFINITY, f64::min)
    }
}

/// The value that a share of `values` is at most.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// A measurement that is sometimes slow. In the repeats of the tables, a tenth of some cells' runs
/// take 2.4 times as long.
pub fn bimodal(random: &mut Random) -> impl FnMut(f64) -> f64 + '_ {
    |value| if random.unit() < 0.1 { value / 2.4 } else { value }
}
