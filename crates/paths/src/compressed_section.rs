//! The content of a section of an ELF file, uncompressed.
//!
//! Compilers and distributions compress debugging information by zlib or Zstandard (`gcc -gz`; ELF
//! gABI, "Compressed Sections"). A hostile file states a size that it does not have, or has more
//! than it states. Several of its sections may be the same bytes. So one limit is for all sections
//! of a file together.

use std::borrow::Cow;
use std::io::Read as _;

use object::{CompressionFormat, ObjectSection};
use ruzstd::decoding::StreamingDecoder;

/// Debugging information gets about three times smaller, and runs of zeros far more.
const LARGEST_RATIO: u64 = 256;
/// The sections of no file are larger together, in bytes.
const LARGEST_TOTAL: u64 = 2 << 30;

/// The bytes that the compressed sections of a file may take together.
pub(crate) fn most_uncompressed(file: &[u8]) -> u64 {
    LARGEST_TOTAL.min(LARGEST_RATIO * file.len() as u64)
}

/// The bytes of a section. `left`: those that the file may still take ([`most_uncompressed`]).
/// `None`: they are damaged, too many, or compressed in another way.
pub(crate) fn uncompressed<'data>(
    section: &impl ObjectSection<'data>,
    left: &mut u64,
) -> Option<Cow<'data, [u8]>> {
    let compressed = section.compressed_data().ok()?;
    if compressed.format == CompressionFormat::None {
        return Some(Cow::Borrowed(compressed.data));
    }
    let size = compressed.uncompressed_size;
    *left = left.checked_sub(size)?;
    let bytes = match compressed.format {
        CompressionFormat::Zlib => {
            let limit = usize::try_from(size).ok()?;
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(compressed.data, limit).ok()?
        }
        CompressionFormat::Zstandard => {
            let mut bytes = Vec::new();
            let decoder = StreamingDecoder::new(compressed.data).ok()?;
            // One more tells that there are too many.
            decoder.take(size + 1).read_to_end(&mut bytes).ok()?;
            bytes
        }
        _ => return None,
    };
    (bytes.len() as u64 == size).then_some(Cow::Owned(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Object;
    use object::read::elf::ElfFile64;

    const COMPRESSED: [&[u8]; 2] = [
        include_bytes!("../../../fuzz/seeds/source_lines/zlib"),
        include_bytes!("../../../fuzz/seeds/source_lines/zstandard"),
    ];

    /// `.debug_line` of a file, read `times` times: the sizes.
    fn sizes(file: &[u8], times: usize) -> Vec<Option<u64>> {
        let elf = ElfFile64::<object::Endianness>::parse(file).unwrap();
        let section = elf.section_by_name(".debug_line").unwrap();
        let mut left = most_uncompressed(file);
        let mut size = || uncompressed(&section, &mut left).map(|bytes| bytes.len() as u64);
        (0..times).map(|_| size()).collect()
    }

    #[test]
    fn sections_of_the_same_bytes_share_one_limit() {
        for file in COMPRESSED {
            let [Some(size)] = sizes(file, 1)[..] else { panic!("it is not damaged") };
            let most = 256 * file.len() as u64 / size;
            let found = sizes(file, most as usize + 3);
            assert_eq!(found.iter().flatten().count() as u64, most);
            assert_eq!(found[most as usize..], [None; 3]);
        }
    }

    #[test]
    fn a_section_with_more_or_less_than_it_states_is_damaged() {
        for file in COMPRESSED {
            let elf = ElfFile64::<object::Endianness>::parse(file).unwrap();
            let (start, _) = elf.section_by_name(".debug_line").unwrap().file_range().unwrap();
            let [Some(size)] = sizes(file, 1)[..] else { panic!("it is not damaged") };
            for stated in [size - 1, size + 1] {
                let mut hostile = file.to_vec();
                hostile[start as usize + 8..][..8].copy_from_slice(&stated.to_le_bytes());
                assert_eq!(sizes(&hostile, 1), [None], "{stated} of {size}");
            }
        }
    }
}
