//! The hash functions of the packet programs.

use std::net::IpAddr;

/// The 32-bit finalizer of MurmurHash3 (Austin Appleby, public domain). It is a bijection in which
/// every input bit changes every output bit with probability near one half. Its high bits index a
/// table.
pub(crate) fn mix(mut word: u32) -> u32 {
    word ^= word >> 16;
    word = word.wrapping_mul(0x85eb_ca6b);
    word ^= word >> 13;
    word = word.wrapping_mul(0xc2b2_ae35);
    word ^ word >> 16
}

/// An address in 32 bits: an IPv4 address as it is, the words of an IPv6 address added up.
pub(crate) fn fold(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            [96, 64, 32, 0]
                .iter()
                .fold(0u32, |sum, &shift| sum.wrapping_add((bits >> shift) as u32))
        }
    }
}
