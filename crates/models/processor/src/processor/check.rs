//! What a description must satisfy to be a processor that can be simulated.

use super::{Processor, ProcessorError};

impl Processor {
    /// Whether every value is one that the simulator can honour; the error names the first that is
    /// not.
    pub(super) fn check(&self) -> Result<(), ProcessorError> {
        let (pipe, core, chip) = (&self.intra_pipe, &self.intra_core, &self.inter_core);
        let (l1, l2, memory) = (&core.l1d, &chip.l2, &chip.memory);
        let length = self.name.chars().count();
        if !(1..=LONGEST_NAME).contains(&length) || self.name.chars().any(char::is_control) {
            return Err(ProcessorError::Name { most: LONGEST_NAME });
        }
        self.range("clock_mhz", self.clock_mhz, 1, 100_000)?;
        self.range("intra-pipe.strands", pipe.strands, 1, 8)?;
        self.only("intra-pipe.fetch.width", pipe.fetch.width, 1)?;
        self.only("intra-pipe.integer.latency", pipe.integer.latency, 1)?;
        self.range("intra-pipe.integer.taken-branch", pipe.integer.taken_branch, 1, MOST_CYCLES)?;
        self.range("intra-core.pipes", core.pipes, 1, 4)?;
        self.range("intra-core.fpx.multiply", core.fpx.multiply, 1, MOST_CYCLES)?;
        self.range("intra-core.fpx.fp-add", core.fpx.fp_add, 1, MOST_CYCLES)?;
        self.range("intra-core.fpd.fp-divide", core.fpd.fp_divide, 1, MOST_CYCLES)?;
        let [shortest, longest] = core.fpd.divide;
        self.range("intra-core.fpd.divide", shortest, 1, longest.min(MOST_CYCLES))?;
        self.range(
            "intra-core.fpd.handover",
            core.fpd.handover,
            0,
            shortest.min(core.fpd.fp_divide) - 1,
        )?;
        self.only("intra-core.lsu.store-buffer", core.lsu.store_buffer, 1)?;
        self.range("intra-core.lsu.fill", core.lsu.fill, 1, MOST_CYCLES)?;
        self.range("intra-core.lsu.fill-patience", core.lsu.fill_patience, 0, MOST_CYCLES)?;
        self.range("intra-core.l1d.latency", l1.latency, 1, MOST_CYCLES)?;
        self.range("intra-core.l1d.line", l1.line, 4, l2.line)?;
        self.cache(
            ["intra-core.l1d.size-kib", "intra-core.l1d.ways", "intra-core.l1d.line"],
            [l1.size_kib, l1.ways, l1.line],
        )?;
        let l1i = &core.l1i;
        self.cache(
            ["intra-core.l1i.size-kib", "intra-core.l1i.ways", "intra-core.l1i.line"],
            [l1i.size_kib, l1i.ways, l1i.line],
        )?;
        self.range("inter-core.cores", chip.cores, 1, 32)?;
        self.cache(
            ["inter-core.l2.size-kib", "inter-core.l2.ways", "inter-core.l2.line"],
            [l2.size_kib, l2.ways, l2.line],
        )?;
        self.power_of_two("inter-core.l2.banks", l2.banks)?;
        self.range("inter-core.l2.banks", l2.banks, 1, (l2.size_kib << 10) / l2.line / l2.ways)?;
        self.range("inter-core.l2.latency", l2.latency, core.lsu.fill + 1, MOST_CYCLES)?;
        self.range("inter-core.l2.busy", l2.busy, 0, MOST_CYCLES)?;
        self.power_of_two("inter-core.memory.controllers", memory.controllers)?;
        self.range("inter-core.memory.controllers", memory.controllers, 1, l2.banks)?;
        self.range("inter-core.memory.latency", memory.latency, l2.latency, MOST_CYCLES)?;
        self.range("inter-core.memory.busy", memory.busy, 0, MOST_CYCLES)?;
        self.range("inter-core.memory.row-conflict", memory.row_conflict, 0, MOST_CYCLES)?;
        self.power_of_two("inter-core.memory.row-kib", memory.row_kib)?;
        self.range("inter-core.memory.row-kib", memory.row_kib, 1, 1 << 10)
    }

    /// Powers of two, at most 16 ways, at least one set.
    fn cache(&self, keys: [&'static str; 3], values: [u32; 3]) -> Result<(), ProcessorError> {
        for (key, value) in keys.into_iter().zip(values) {
            self.power_of_two(key, value)?;
        }
        let [size_kib, ways, line] = values;
        self.range(keys[0], size_kib, 1, 1 << 20)?;
        self.range(keys[1], ways, 1, 16.min((size_kib << 10) / line))
    }

    fn range(
        &self,
        key: &'static str,
        value: u32,
        least: u32,
        most: u32,
    ) -> Result<(), ProcessorError> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(self.error(
            key,
            value,
            match least <= most {
                true => format!("expected {least} to {most}, given the values around it"),
                false => "no value fits the values around it".into(),
            },
        ))
    }

    fn only(&self, key: &'static str, value: u32, simulated: u32) -> Result<(), ProcessorError> {
        if value == simulated {
            Ok(())
        } else {
            Err(self.error(key, value, format!("only {simulated} is simulated")))
        }
    }

    fn power_of_two(&self, key: &'static str, value: u32) -> Result<(), ProcessorError> {
        if value.is_power_of_two() {
            Ok(())
        } else {
            Err(self.error(key, value, "expected a power of two".into()))
        }
    }

    fn error(&self, key: &'static str, value: u32, reason: String) -> ProcessorError {
        ProcessorError::Value { processor: self.name.clone(), key, value: u64::from(value), reason }
    }
}

/// Characters of a name.
const LONGEST_NAME: usize = 40;
/// More cycles than any latency has; keeps sums far from overflow.
const MOST_CYCLES: u32 = 1 << 20;
