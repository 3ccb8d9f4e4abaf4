//! Key presses and clicks that the debugger receives during a movement through the launch.

use std::collections::VecDeque;

use crossterm::event::{Event, KeyCode, KeyModifiers};

/// Events that wait for the end of the movement, in order.
#[derive(Debug, Default)]
pub(super) struct TypedAhead(VecDeque<Event>);

impl TypedAhead {
    /// Handles an event during a movement. Returns whether the event ends the movement. Only Ctrl-C and Escape end a
    /// movement. Ctrl-C and Escape also discard all events that wait for the end of the movement.
    pub(super) fn ends_movement(&mut self, event: Event) -> bool {
        let ends = event.as_key_press_event().is_some_and(|key| {
            key.code == KeyCode::Esc
                || key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL
        });
        match ends {
            true => self.0.clear(),
            false => self.0.push_back(event),
        }
        ends
    }

    /// Removes and returns the oldest event.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    /// Regression test. An earlier version dropped keys that the user typed during a movement.
    #[test]
    fn keys_wait_for_the_end_of_a_movement_in_their_order_and_ctrl_c_drops_them() {
        let key = |letter, modifiers| Event::Key(KeyEvent::new(KeyCode::Char(letter), modifiers));
        let mut ahead = TypedAhead::default();
        for letter in "sbs".chars() {
            assert!(!ahead.ends_movement(key(letter, KeyModifiers::NONE)));
        }
        let waiting = std::iter::from_fn(|| ahead.next()).filter_map(|event| event.as_key_press_event());
        assert_eq!(waiting.map(|key| key.code).collect::<Vec<_>>(), ['s', 'b', 's'].map(KeyCode::Char));
        assert!(!ahead.ends_movement(key('s', KeyModifiers::NONE)));
        assert!(ahead.ends_movement(key('c', KeyModifiers::CONTROL)));
        assert_eq!(ahead.next(), None);
        assert!(ahead.ends_movement(Event::Key(KeyCode::Esc.into())));
    }
}
