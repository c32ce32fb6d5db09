//! From fragments to a profile: how often each path ran.
//!
//! - [`observation`] turns fragments into partial paths, and weighs them.
//! - [`expand`] is the published method: what follows without a choice is filled in.
//! - [`context`] says what follows a partial path, from the longest context that was seen.
//! - [`likelihood`] shares partial paths out among whole paths.

pub(crate) mod context;
pub(crate) mod expand;
pub(crate) mod likelihood;
pub(crate) mod observation;
