//! The fixed-function stages of a graphics chip, which the three emulated chips share. The stages convert the results
//! of a vertex program to stored pixels. This crate does not run programs. A [`draw::FragmentProgram`] shades whole
//! quads.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@draw`] | the state of a draw, and the stages in order |
//! | [`primitive`] | assembly of points, lines and triangles from indices |
//! | [`vertex`], [`clip`] | vertices, and clipping of primitives |
//! | [`setup`], [`mask`] | the pixels that a primitive covers, and masks of the pixels that may be drawn |
//! | [`interpolate`] | the inputs of a fragment program |
//! | [`depth`], [`blend`] | depth and stencil tests, and blending |
//! | `shading` | the fragment program as a trait object |
//! | `batches` | distribution of lanes over threads |
//! | `lanes`, `merge` | fragments one by one: their inputs, and their storage in memory |
//! | `span`, `columns`, `kernels` | coverage, inputs and merging of many pixels at once |
//! | `copy` | texels that are copied to a target unchanged |
//! | `fills` | primitives whose pixels all have the same value |
//! | [`reference`](mod@reference) | reference implementation of draws, pixel by pixel |
//! | [`format`](mod@format), [`block`] | formats of surface elements, and compressed texels |

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
