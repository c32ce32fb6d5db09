//! The content of a section of an ELF file, uncompressed.
//!
//! Compilers and distributions compress debugging information by zlib or Zstandard (`gcc -gz`; ELF
//! gABI, "Compressed Sections"). A hostile file states a size that it does not have, or has more
//! than it states. So neither is believed beyond a limit.

use std::borrow::Cow;
use std::io::Read as _;

use object::{CompressionFormat, ObjectSection};
use ruzstd::decoding::StreamingDecoder;

/// Debugging information gets about three times smaller, and runs of zeros far more.
const LARGEST_RATIO: u64 = 256;
/// No section is larger uncompressed, in bytes.
const LARGEST_SECTION: u64 = 2 << 30;

/// The bytes of a section. `None`: they are damaged, too many, or compressed in another way.
pub(crate) fn uncompressed<'data>(section: &impl ObjectSection<'data>) -> Option<Cow<'data, [u8]>> {
    let compressed = section.compressed_data().ok()?;
    if compressed.format == CompressionFormat::None {
        return Some(Cow::Borrowed(compressed.data));
    }
    let size = compressed.uncompressed_size;
    if size > LARGEST_SECTION || size > LARGEST_RATIO * compressed.data.len() as u64 {
        return None;
    }
    let bytes = match compressed.format {
        CompressionFormat::Zlib => {
            let limit = usize::try_from(size).ok()?;
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(compressed.data, limit).ok()?
        }
        CompressionFormat::Zstandard => {
            let mut bytes = Vec::new();
            let decoder = StreamingDecoder::new(compressed.data).ok()?;
            decoder.take(size).read_to_end(&mut bytes).ok()?;
            bytes
        }
        _ => return None,
    };
    (bytes.len() as u64 == size).then_some(Cow::Owned(bytes))
}
