//! The Internet checksum: computed in full (RFC 1071), and adjusted where one word of the data
//! changes (RFC 1624).

/// The 16-bit ones' complement sum of `bytes`, big-endian words, an odd last byte padded with zero
/// (RFC 1071, section 1). Over data that contains its own valid checksum this is 0xffff.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let mut words = bytes.chunks_exact(2);
    let mut total: u64 =
        words.by_ref().map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    if let [last] = words.remainder() {
        total += u64::from(*last) << 8;
    }
    fold(total)
}

/// The checksum of data in which `old` became `new`: `~(~HC + ~m + m')`, equation 3 of RFC 1624.
/// Unlike the one of RFC 1141, it never turns a correct checksum into the wrong one of the two
/// zeros.
pub(crate) fn replace(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071_adds_up() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_does_not_become_the_other_zero() {
        assert_eq!(replace(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn replacing_a_word_equals_computing_anew(
            mut words in prop::collection::vec(any::<u16>(), 2..40),
            at in any::<prop::sample::Index>(),
            new: u16,
        ) {
            let bytes = |words: &[u16]| -> Vec<u8> {
                words.iter().flat_map(|word| word.to_be_bytes()).collect()
            };
            let at = at.index(words.len());
            let before = !sum(&bytes(&words));
            let old = std::mem::replace(&mut words[at], new);
            // All-zero data is the one case in which the two representations of zero differ; no
            // packet header is all zero.
            prop_assume!(words.iter().any(|&word| word != 0));
            prop_assert_eq!(replace(before, old, new), !sum(&bytes(&words)));
        }
    }
}
