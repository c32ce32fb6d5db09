//! What the P thread does with a packet.

use crate::frame::Layout;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketAction {
    /// It leaves through this port.
    Forward(u8),
    /// It does not leave.
    Drop,
}

/// The work of one P thread, with the state that it keeps between packets.
pub trait PacketWork: Send {
    /// Processes one received frame, whose headers are where `layout` says.
    fn process(&mut self, frame: &[u8], layout: &Layout) -> PacketAction;

    /// What was found so far: what is counted, and how many.
    fn findings(&self) -> Vec<(&'static str, u64)>;
}

/// The port that a packet leaves through if no routing table decides. It depends on the packet's
/// addresses, so that a flow keeps its port.
pub(crate) fn port_by_flow(hash: u32) -> PacketAction {
    PacketAction::Forward((hash >> 28) as u8)
}
