//! Sets of hardware contexts, and the list and mask forms in which Linux and its tools write them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The kernel's number of a hardware context (hwloc's `P#`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuId(pub u32);

/// A set of hardware contexts of any size: machines beyond 1,024 CPUs exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet {
    /// Bit `i % 64` of word `i / 64` stands for CPU `i`. The last word is never zero, so equal sets
    /// compare equal.
    words: Vec<u64>,
}

/// Why a text is no CPU list or mask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a CPU set: {reason}")]
pub struct CpuSetError {
    /// The text as given.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// No kernel numbers a CPU this high (`NR_CPUS` is at most 8,192). A larger number in a text is a
/// mistake, and would cost memory.
const HIGHEST: u32 = 65_535;

impl CpuSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a context.
    pub fn insert(&mut self, cpu: CpuId) {
        let word = cpu.0 as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu.0 % 64);
    }

    /// Takes a context out.
    pub fn remove(&mut self, cpu: CpuId) {
        if let Some(word) = self.words.get_mut(cpu.0 as usize / 64) {
            *word &= !(1 << (cpu.0 % 64));
        }
        self.trim();
    }

    /// Whether the context is in the set.
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get(cpu.0 as usize / 64).is_some_and(|word| word >> (cpu.0 % 64) & 1 == 1)
    }

    /// How many contexts.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The contexts in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0u32..).zip(&self.words).flat_map(|(index, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| CpuId(index * 64 + bit))
        })
    }

    /// The lowest context.
    pub fn first(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// Contexts in either.
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a | b)
    }

    /// Contexts in both.
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & b)
    }

    /// Contexts in this set and not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & !b)
    }

    /// Whether every context of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words.len() <= other.words.len()
            && self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Whether no context is in both.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & b == 0)
    }

    /// Parses a CPU list (`0,3,7-11`, with taskset's stride `0-31:2`); an empty text is the empty
    /// set.
    pub fn parse_list(text: &str) -> Result<Self, CpuSetError> {
        let fail = |reason: &str| CpuSetError { text: text.into(), reason: reason.into() };
        let number = |digits: &str| match digits.trim().parse::<u32>() {
            Ok(cpu) if cpu <= HIGHEST => Ok(cpu),
            Ok(_) => Err(fail("a CPU number above 65535")),
            Err(_) => Err(fail("expected a CPU number, a range such as 0-3, or a list of these")),
        };
        let mut set = Self::new();
        if text.trim().is_empty() {
            return Ok(set);
        }
        for part in text.split(',') {
            let (range, stride) = match part.split_once(':') {
                Some((range, stride)) => (range, number(stride)?),
                None => (part, 1),
            };
            let (low, high) = match range.split_once('-') {
                Some((low, high)) => (number(low)?, number(high)?),
                None => (number(range)?, number(range)?),
            };
            if low > high {
                return Err(fail("a range that ends before it begins"));
            }
            if stride == 0 {
                return Err(fail("a stride of 0"));
            }
            set.extend((low..=high).step_by(stride as usize).map(CpuId));
        }
        Ok(set)
    }

    /// Parses a hexadecimal mask: `ff`, taskset's `0x55555555`, or the comma separated blocks of 32
    /// bits of the kernel and hwloc. In `0xffc0140,0x00020110`, an empty block is 0.
    pub fn parse_mask(text: &str) -> Result<Self, CpuSetError> {
        let fail = |reason: &str| CpuSetError { text: text.into(), reason: reason.into() };
        let mut set = Self::new();
        let digits = |block: &str| block.trim().trim_start_matches("0x").to_owned();
        let blocks: Vec<String> = text.trim().split(',').map(digits).collect();
        for (index, block) in (0u32..).zip(blocks.iter().rev()) {
            if blocks.len() > 1 && block.len() > 8 {
                return Err(fail("a block of more than 32 bits"));
            }
            for (nibble, digit) in (0u32..).zip(block.chars().rev()) {
                let value =
                    digit.to_digit(16).ok_or_else(|| fail("expected hexadecimal digits"))?;
                for bit in (0..4).filter(|bit| value >> bit & 1 == 1) {
                    let cpu = index * 32 + nibble * 4 + bit;
                    if cpu > HIGHEST {
                        return Err(fail("a CPU number above 65535"));
                    }
                    set.insert(CpuId(cpu));
                }
            }
        }
        Ok(set)
    }

    /// The mask as taskset takes it: one hexadecimal number, `0x55555555`.
    pub fn to_mask(&self) -> String {
        let mut text: String = self.words.iter().rev().map(|word| format!("{word:016x}")).collect();
        let zeros = text.bytes().take_while(|&digit| digit == b'0').count();
        text.drain(..zeros.min(text.len().saturating_sub(1)));
        format!("0x{}", if text.is_empty() { "0" } else { &text })
    }

    /// The mask as hwloc writes it: blocks of 32 bits, highest first, `0xffc0140,0x00020110`.
    pub fn to_hwloc(&self) -> String {
        let halves = self.words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
        let mut blocks: Vec<u32> = halves.collect();
        while blocks.len() > 1 && blocks.last() == Some(&0) {
            blocks.pop();
        }
        if blocks.is_empty() {
            blocks.push(0);
        }
        let texts: Vec<String> =
            blocks.iter().rev().map(|block| format!("0x{block:08x}")).collect();
        texts.join(",")
    }

    fn combine(&self, other: &Self, operation: impl Fn(u64, u64) -> u64) -> Self {
        let word = |set: &Self, index: usize| set.words.get(index).copied().unwrap_or(0);
        let length = self.words.len().max(other.words.len());
        let words =
            (0..length).map(|index| operation(word(self, index), word(other, index))).collect();
        let mut set = Self { words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl Extend<CpuId> for CpuSet {
    fn extend<T: IntoIterator<Item = CpuId>>(&mut self, cpus: T) {
        cpus.into_iter().for_each(|cpu| self.insert(cpu));
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<T: IntoIterator<Item = CpuId>>(cpus: T) -> Self {
        let mut set = Self::new();
        set.extend(cpus);
        set
    }
}

/// The kernel's list form: `0,3,7-11`; the empty set is the empty text.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().map(|cpu| cpu.0).peekable();
        let mut separator = "";
        while let Some(low) = cpus.next() {
            let mut high = low;
            while let Some(next) = cpus.next_if_eq(&(high + 1)) {
                high = next;
            }
            match high - low {
                0 => write!(f, "{separator}{low}")?,
                1 => write!(f, "{separator}{low},{high}")?,
                _ => write!(f, "{separator}{low}-{high}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    /// Parses the list form.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse_list(text)
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_list(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(cpus: &[u32]) -> CpuSet {
        cpus.iter().map(|&cpu| CpuId(cpu)).collect()
    }

    #[test]
    fn lists_are_read_as_taskset_reads_them() {
        assert_eq!(CpuSet::parse_list("0,3,7-11").unwrap(), set(&[0, 3, 7, 8, 9, 10, 11]));
        assert_eq!(CpuSet::parse_list("0-31:2").unwrap().to_mask(), "0x55555555");
        assert_eq!(CpuSet::parse_list("\n").unwrap(), CpuSet::new());
        for bad in ["a", "3-1", "0-3:0", "1,,2", "99999999", "-1", "4294967297"] {
            assert!(CpuSet::parse_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn masks_of_the_kernel_and_of_hwloc_are_read() {
        assert_eq!(CpuSet::parse_mask("00000000,0000000f").unwrap(), set(&[0, 1, 2, 3]));
        assert_eq!(CpuSet::parse_mask("0x1,,").unwrap(), set(&[64]));
        assert_eq!(
            CpuSet::parse_mask("0xffc0140,0x00020110").unwrap().to_hwloc(),
            "0x0ffc0140,0x00020110"
        );
        assert!(CpuSet::parse_mask("0xg").is_err());
        assert_eq!(CpuSet::new().to_mask(), "0x0");
        assert_eq!(CpuSet::new().to_hwloc(), "0x00000000");
    }

    proptest! {
        #[test]
        fn every_set_survives_every_form(
            cpus in proptest::collection::btree_set(0u32..600, 0..40),
        ) {
            let set: CpuSet = cpus.iter().map(|&cpu| CpuId(cpu)).collect();
            prop_assert_eq!(set.len(), cpus.len());
            let evens: CpuSet = set.iter().filter(|cpu| cpu.0 % 2 == 0).collect();
            prop_assert!(evens.is_subset(&set) && evens.is_disjoint(&set.difference(&evens)));
            prop_assert_eq!(set.is_subset(&evens), set == evens);
            prop_assert_eq!(set.is_disjoint(&evens), evens.is_empty());
            prop_assert_eq!(&CpuSet::parse_list(&set.to_string()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse_mask(&set.to_mask()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse_mask(&set.to_hwloc()).unwrap(), &set);
        }
    }
}
