//! Changes to the flow state from outside, for fault injection. The changes imitate a particle that hits a latch or an
//! entry of the token stack.
//!
//! The functions of this file preserve an invariant: an active lane is not in the state BRK, RET or EXIT.

use reconverge_simt::Mask;

use super::{Flow, INDIRECT_TARGET_BITS, TokenType, WARP};

/// The bits of the address in a stack entry. (9.1, 9.3)
pub const ADDRESS_BITS: u32 = INDIRECT_TARGET_BITS;

impl Flow {
    /// Returns the lanes that were launched.
    pub fn launched(&self) -> Mask {
        self.launched
    }

    /// Changes the active lanes. Even ended lanes run again if the caller adds these lanes. If no lane remains active,
    /// the warp has finished. The entries on the stack do not matter.
    pub fn set_active(&mut self, lanes: Mask) {
        // Lanes that run only as helpers for their quad (between `quadon` and `quadpop`) stay active.
        let lanes = (lanes & self.launched) | (self.active - self.launched);
        let on = lanes - self.active;
        (self.brk, self.ret, self.exited) = (self.brk - on, self.ret - on, self.exited - on);
        self.active = lanes;
    }

    /// Changes the lanes of a stack entry. Entry 0 is the outermost. Does nothing if the entry does not exist.
    ///
    /// Lanes in the state BRK, RET or EXIT cannot be added to a QUADON entry. If the entry has any other type, the pop
    /// removes such lanes from the entry.
    pub fn set_token_mask(&mut self, entry: usize, lanes: Mask) {
        let run = self.run();
        if let Some(token) = self.stack.get_mut(entry) {
            let added = (lanes & Mask::first(WARP)) - token.mask;
            let stays = if token.token == TokenType::Quadon { added & run } else { added };
            token.mask = (lanes & token.mask) | stays;
        }
    }

    /// Changes the type of a stack entry, if the entry exists. Entry 0 is the outermost. If the new type is QUADON, the
    /// entry loses its lanes in the state BRK, RET or EXIT.
    pub fn set_token_type(&mut self, entry: usize, token: TokenType) {
        let run = self.run();
        if let Some(changed) = self.stack.get_mut(entry) {
            changed.token = token;
            if token == TokenType::Quadon {
                changed.mask &= run;
            }
        }
    }

    /// Changes the address of a stack entry. Does nothing if the entry does not exist.
    pub fn set_token_pc(&mut self, entry: usize, pc: u32) {
        if let Some(token) = self.stack.get_mut(entry) {
            token.pc = pc & ADDRESS_BITS;
        }
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::{FlowView, Mode, Silent};

    use super::*;
    use crate::flow::{Join, Limits};

    #[test]
    fn a_changed_token_decides_where_and_for_whom_the_warp_goes_on() {
        let mut flow = Flow::new(0, Mask(0b111), Limits::default(), Mode::Strict);
        flow.joinat(0x30, 0x08, &mut Silent).unwrap();
        flow.bra(0x20, 0x10, Mask(0b001), &mut Silent).unwrap();
        flow.set_token_mask(1, Mask(0b010));
        flow.set_token_pc(1, 0x19);
        assert_eq!(flow.join(&mut Silent), Ok(Join::Away));
        assert_eq!((flow.pc(), flow.active()), (0x18, Mask(0b010)));
        flow.set_active(Mask::NONE);
        assert_eq!((flow.finished(), flow.issue()), (true, None));
    }

    #[test]
    fn a_token_of_another_type_is_popped_as_that_type() {
        let mut flow = Flow::new(0, Mask(0b111), Limits::default(), Mode::Strict);
        flow.joinat(0x30, 0x08, &mut Silent).unwrap();
        flow.set_token_type(0, TokenType::Break);
        assert_eq!(flow.stack()[0].kind, "BREAK");
        flow.set_token_type(1, TokenType::Call);
        assert_eq!(flow.tokens().len(), 1);
    }

    /// `quadpop` activates all lanes of its entry, even lanes that have exited.
    #[test]
    fn a_lane_that_has_exited_is_no_lane_of_a_quadon_entry() {
        let mut flow = Flow::new(0, Mask(0b111), Limits::default(), Mode::Strict);
        flow.bra(0x20, 0x08, Mask(0b001), &mut Silent).unwrap();
        flow.exit(&mut Silent).unwrap();
        flow.quadon(0x10, &mut Silent).unwrap();
        let before = flow.tokens()[0].mask;
        assert_eq!(before, Mask(0b110));
        flow.set_token_mask(0, Mask(0b101));
        assert_eq!(flow.tokens()[0].mask, Mask(0b100));
        flow.set_token_mask(0, Mask(0b010));
        assert_eq!(flow.tokens()[0].mask, Mask(0b010));
        // A lane that has exited can be added to an entry of any type except for QUADON.
        let mut flow = Flow::new(0, Mask(0b111), Limits::default(), Mode::Strict);
        flow.joinat(0x30, 0x08, &mut Silent).unwrap();
        flow.bra(0x20, 0x10, Mask(0b001), &mut Silent).unwrap();
        flow.exit(&mut Silent).unwrap();
        flow.set_token_mask(0, Mask(0b001));
        assert_eq!(flow.tokens()[0].mask, Mask(0b001));
    }

    #[test]
    fn a_lane_that_comes_on_is_running() {
        let mut flow = Flow::new(0, Mask(0b111), Limits::default(), Mode::Strict);
        flow.breakaddr(0x40, 0x08, &mut Silent).unwrap();
        flow.break_(Mask(0b001), 0x10, &mut Silent).unwrap();
        flow.set_active(Mask(0b1011));
        // Lane 3 was never launched. Lane 2 is inactive and waits only for the BREAK entry.
        assert_eq!(flow.active(), Mask(0b011));
        flow.break_(Mask(0b001), 0x18, &mut Silent).unwrap();
        flow.break_(Mask(0b010), 0x18, &mut Silent).unwrap();
        assert_eq!((flow.pc(), flow.active()), (0x40, Mask(0b111)));
    }
}
