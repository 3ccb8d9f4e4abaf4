//! The fixed-function stages of a graphics chip, which all three machines share: from vertices that a vertex program has
//! left to what is in memory. Programs are somebody else's: a [`draw::FragmentProgram`] shades whole quads.
//!
//! | read | for |
//! |---|---|
//! | [`mod@draw`] | all that a draw depends on, and the stages one after another |
//! | [`primitive`] | from indices to points, lines, triangles |
//! | [`vertex`], [`clip`] | vertices, and what is cut of primitives |
//! | [`setup`], [`mask`] | which pixels a primitive covers, and which of them may be drawn |
//! | [`interpolate`] | what a fragment program reads |
//! | [`depth`], [`blend`] | the tests, and how colours are put together |
//! | `shading` | the fragment program, without its type |
//! | `batches` | the lanes of a draw on several threads |
//! | `lanes`, `merge` | fragments one by one: their inputs, and their end in memory |
//! | `span`, `columns`, `kernels` | coverage, inputs and merging of many pixels at once |
//! | `copy` | texels that go to a target as they are |
//! | `fills` | pixels that are all alike |
//! | [`reference`](mod@reference) | the same pixel by pixel |
//! | [`format`](mod@format), [`block`] | elements of surfaces, compressed texels |

#![forbid(unsafe_code)]

mod batches;
pub mod blend;
pub mod block;
pub mod clip;
mod columns;
mod copy;
pub mod depth;
pub mod draw;
mod fills;
pub mod format;
pub mod interpolate;
mod kernels;
mod lanes;
pub mod mask;
mod merge;
pub mod primitive;
pub mod reference;
pub mod setup;
mod shading;
mod span;
mod state;
pub mod vertex;
