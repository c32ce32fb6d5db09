//! Where loads and stores go: the first-level caches of the cores, the banks of the second level,
//! the memory controllers.
//!
//! A request is followed to its end when it is made. It books the banks and controllers that it
//! will occupy at once, in the order of the requests. Only the last step, the fill of the
//! first-level cache, belongs to the core ([`crate::core`]).
//!
//! The second level includes the first: a line that leaves it leaves the first-level caches too.
//! Stores write through, allocate in the second level only, and remove the copies of the other
//! cores.

mod cache;

use crate::processor::Processor;
use crate::program::Region;
pub use cache::CacheTags;

/// What becomes of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// The value is in the first level.
    Hit,
    /// The line arrives in this cycle and can begin to be filled in.
    Arrives {
        /// The cycle.
        at: u64,
        /// Whether it comes from main memory.
        from_memory: bool,
    },
}

/// A memory controller: one line at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Controller {
    free_at: u64,
    row: u64,
}

/// The caches of all cores and what is behind them.
#[derive(Clone, Debug)]
pub(crate) struct Hierarchy {
    l1: Vec<CacheTags>,
    l2: CacheTags,
    /// For each place of the second level, the cores that may hold a part of its line. Bit *n* is
    /// core *n*.
    holders: Vec<u32>,
    /// When each bank is free.
    banks: Vec<u64>,
    controllers: Vec<Controller>,
    l1_shift: u32,
    l2_shift: u32,
    row_shift: u32,
    banks_per_controller: usize,
    /// From the request to the arrival of the line at the first level.
    l2_arrival: u64,
    memory_arrival: u64,
    l2_latency: u64,
    memory_latency: u64,
    bank_busy: u64,
    controller_busy: u64,
    row_conflict: u64,
}

impl Hierarchy {
    /// An empty second level, with no cores before it.
    pub(crate) fn new(processor: &Processor) -> Self {
        let (l1d, lsu) = (&processor.intra_core.l1d, &processor.intra_core.lsu);
        let (l2, memory) = (&processor.inter_core.l2, &processor.inter_core.memory);
        let second =
            CacheTags::new((l2.size_kib as usize) << 10, l2.ways, l2.line, l2.banks, l2.policy);
        Self {
            l1: Vec::new(),
            holders: vec![0; second.lines()],
            l2: second,
            banks: vec![0; l2.banks as usize],
            controllers: vec![Controller::default(); memory.controllers as usize],
            l1_shift: l1d.line.trailing_zeros(),
            l2_shift: l2.line.trailing_zeros(),
            // Neighbouring lines lie with different controllers: a row of each covers this much
            // memory.
            row_shift: (memory.row_kib << 10).trailing_zeros()
                + memory.controllers.trailing_zeros(),
            banks_per_controller: (l2.banks / memory.controllers) as usize,
            l2_arrival: u64::from(l2.latency - lsu.fill),
            memory_arrival: u64::from(memory.latency - lsu.fill),
            l2_latency: u64::from(l2.latency),
            memory_latency: u64::from(memory.latency),
            bank_busy: u64::from(l2.busy),
            controller_busy: u64::from(memory.busy),
            row_conflict: u64::from(memory.row_conflict),
        }
    }

    /// Adds this many cores, with empty first-level caches.
    pub(crate) fn add_cores(&mut self, processor: &Processor, cores: usize) {
        let l1d = &processor.intra_core.l1d;
        let l1 = CacheTags::new((l1d.size_kib as usize) << 10, l1d.ways, l1d.line, 1, l1d.policy);
        self.l1.extend(vec![l1; cores]);
    }

    /// Fills the second level with what has long been in use. No time passes.
    ///
    /// Any part of a region larger than the second level may be there. The level gets lines from
    /// all over the region, as many as fit together with the other such regions. Smaller regions
    /// come whole and after the larger ones, as what is used often stays.
    pub(crate) fn preload(&mut self, resident: &[Region]) {
        let capacity = self.l2.lines() as u64;
        let lines = |region: &Region| (region.length >> self.l2_shift).max(1);
        let mut regions: Vec<&Region> = resident.iter().collect();
        regions.sort_by_key(|region| std::cmp::Reverse(region.length));
        let large = regions.iter().filter(|region| lines(region) > capacity).count() as u64;
        for region in regions {
            // An odd number of lines apart, they fall into all sets alike.
            let stride =
                if lines(region) > capacity { (lines(region) * large / capacity) | 1 } else { 1 };
            let first = region.base >> self.l2_shift;
            let last = (region.base + region.length - 1) >> self.l2_shift;
            for line in (first..=last).step_by(stride as usize) {
                self.l2.insert(line as u32);
            }
        }
    }

    /// Starts a reader for each of `arrays`. It goes through the array line by line, from the next
    /// cycle on. Each load starts when the one before has arrived. Ends when every reader has made
    /// `passes` passes. The second level is then as threads that chase pointers leave it. No core
    /// takes part, and no time has passed afterwards.
    pub(crate) fn read_through(&mut self, arrays: &[(Region, u64)], passes: u64) {
        let line = 1 << self.l2_shift;
        // When each reader loads next, and how many lines it has loaded.
        let mut readers: Vec<(u64, u64)> = arrays.iter().map(|&(_, start)| (start, 0)).collect();
        let lines: Vec<u64> =
            arrays.iter().map(|(array, _)| (array.length >> self.l2_shift).max(1)).collect();
        let mut under_way = arrays.len();
        while under_way > 0 {
            let Some(first) = (0..readers.len()).min_by_key(|&reader| readers[reader].0) else {
                return;
            };
            let (now, loaded) = &mut readers[first];
            let address = arrays[first].0.base + *loaded % lines[first] * line;
            let (started, _, from_memory) = self.second_level(address, *now);
            *now = started + if from_memory { self.memory_latency } else { self.l2_latency };
            *loaded += 1;
            under_way -= usize::from(*loaded == passes * lines[first]);
        }
        self.banks.fill(0);
        self.controllers.fill(Controller::default());
    }

    /// A load of core `core` at cycle `now`.
    #[inline]
    pub(crate) fn load(&mut self, core: usize, address: u64, now: u64) -> Load {
        if self.l1[core].access((address >> self.l1_shift) as u32).is_some() {
            return Load::Hit;
        }
        let (started, place, from_memory) = self.second_level(address, now);
        self.holders[place] |= 1 << core;
        let at = started + if from_memory { self.memory_arrival } else { self.l2_arrival };
        Load::Arrives { at, from_memory }
    }

    /// A load of core `core`, if it hits the first level; otherwise nothing happens.
    #[inline]
    pub(crate) fn hits(&mut self, core: usize, address: u64) -> bool {
        self.l1[core].access((address >> self.l1_shift) as u32).is_some()
    }

    /// The line of `address` arrives in the first level of `core`.
    pub(crate) fn fill(&mut self, core: usize, address: u64) {
        self.l1[core].insert((address >> self.l1_shift) as u32);
    }

    /// A store of core `core` at cycle `now`. Returns when it has left the store buffer, and
    /// whether it went to main memory.
    pub(crate) fn store(&mut self, core: usize, address: u64, now: u64) -> (u64, bool) {
        let (started, place, from_memory) = self.second_level(address, now);
        let own = 1 << core;
        let mut others = self.holders[place] & !own;
        while others != 0 {
            self.l1[others.trailing_zeros() as usize].remove((address >> self.l1_shift) as u32);
            others &= others - 1;
        }
        (started + if from_memory { self.memory_latency } else { self.l2_latency }, from_memory)
    }

    /// An access of the second level. It has the cycle its bank, and if needed its controller,
    /// began with it. It says where the line is now and whether it came from memory.
    fn second_level(&mut self, address: u64, now: u64) -> (u64, usize, bool) {
        let line = (address >> self.l2_shift) as u32;
        let bank = line as usize & (self.banks.len() - 1);
        let started = now.max(self.banks[bank]);
        self.banks[bank] = started + self.bank_busy;
        if let Some(place) = self.l2.access(line) {
            return (started, place, false);
        }
        let (place, evicted) = self.l2.insert_new(line);
        let holders = std::mem::take(&mut self.holders[place]);
        if let Some(evicted) = evicted {
            self.remove_parts(evicted, holders);
        }
        let controller = &mut self.controllers[bank / self.banks_per_controller];
        let row = address >> self.row_shift;
        let conflict = if row == controller.row { 0 } else { self.row_conflict };
        let started = started.max(controller.free_at) + conflict;
        controller.free_at = started + self.controller_busy;
        controller.row = row;
        (started, place, true)
    }

    /// Removes every part of a line of the second level from the first level of the cores in
    /// `holders`.
    fn remove_parts(&mut self, line: u32, mut holders: u32) {
        let parts = self.l2_shift - self.l1_shift;
        while holders != 0 {
            let l1 = &mut self.l1[holders.trailing_zeros() as usize];
            (0..1 << parts).for_each(|part| l1.remove(line << parts | part));
            holders &= holders - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t2() -> Hierarchy {
        Hierarchy::new(&Processor::model("ultrasparc-t2").unwrap())
    }

    /// The share of the lines of `region` that the second level holds.
    fn held(memory: &mut Hierarchy, region: Region) -> f64 {
        let lines = region.base >> 6..(region.base + region.length) >> 6;
        let count = lines.end - lines.start;
        lines.filter(|&line| memory.l2.access(line as u32).is_some()).count() as f64 / count as f64
    }

    #[test]
    fn what_fits_is_there_from_the_beginning_whole_and_the_rest_in_part() {
        let mut memory = t2();
        let small = Region { base: 1 << 30, length: 512 << 10 };
        let large = [0, 1].map(|table| Region { base: table << 26, length: 64 << 20 });
        memory.preload(&[small, large[0], large[1]]);
        assert_eq!(held(&mut memory, small), 1.0);
        // 4 MiB less the small one, of 128 MiB.
        let expected = 3.5 / 128.0;
        for region in large {
            let held = held(&mut memory, region);
            assert!((held - expected).abs() < 0.1 * expected, "{held}");
        }
    }

    #[test]
    fn readers_leave_what_fits_and_take_no_time() {
        let region = |number: u64, kib: u64| Region { base: number << 24, length: kib << 10 };
        let mut memory = t2();
        let fitting = [region(0, 1536), region(1, 1536)];
        memory.read_through(&fitting.map(|array| (array, 0)), 1);
        assert_eq!(fitting.map(|array| held(&mut memory, array)), [1.0, 1.0]);
        assert_eq!(memory.second_level(1 << 30, 0).0, memory.row_conflict);
        // One that finds its lines is faster than one that does not. It goes on as long as that one
        // reads.
        let mut memory = t2();
        let beyond = [region(0, 1536), region(1, 6144)];
        memory.read_through(&beyond.map(|array| (array, 0)), 3);
        assert_eq!(held(&mut memory, beyond[0]), 1.0);
        let mut thrashed = t2();
        let crowded = [0, 1, 2].map(|number| region(number, 1536));
        thrashed.read_through(&crowded.map(|array| (array, array.base >> 22)), 3);
        let held: f64 = crowded.iter().map(|&array| held(&mut thrashed, array)).sum();
        assert!((held * 1.5 - 4.0).abs() < 0.01, "{held}");
    }

    #[test]
    fn a_reader_leaves_what_the_same_loads_of_a_core_leave() {
        let processor = Processor::model("ultrasparc-t2").unwrap();
        for kib in [1536, 6144] {
            let array = Region { base: 3 << 24, length: kib << 10 };
            let [mut read, mut loaded] = [t2(), t2()];
            read.read_through(&[(array, 0)], 3);
            loaded.add_cores(&processor, 1);
            let mut now = 0;
            for line in (0..3).flat_map(|_| (0..array.length).step_by(64)) {
                if let Load::Arrives { at, .. } = loaded.load(0, array.base + line, now) {
                    now = at + 2;
                }
            }
            assert_eq!(format!("{:?}", read.l2), format!("{:?}", loaded.l2));
        }
    }

    #[test]
    fn without_residents_the_second_level_is_empty() {
        assert_eq!(held(&mut t2(), Region { base: 0, length: 1 << 20 }), 0.0);
    }
}
