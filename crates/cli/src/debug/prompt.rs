//! The command line of the debugger's screen, with editing keys and a history.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::Paragraph;
use reconverge_workbench::debugger::Debugger;
use reconverge_workbench::debugger::command::{completions, last_word};
use tui_input::{Input, InputRequest};

/// The text before the command.
const BEFORE: &str = ": ";

/// A command line and its history.
#[derive(Debug, Default)]
pub(super) struct Prompt {
    /// The current line, or `None` if the command line is closed.
    line: Option<Input>,
    history: Vec<String>,
    /// Index of the shown command in the history, or `None` if the user does not browse the history.
    recalled: Option<usize>,
    /// The unfinished line, saved when the user starts to browse the history.
    draft: String,
}

impl Prompt {
    /// Opens an empty line.
    pub(super) fn open(&mut self) {
        self.line = Some(Input::default());
    }

    /// Whether the command line is open.
    pub(super) fn is_open(&self) -> bool {
        self.line.is_some()
    }

    /// Drops the line and closes the command line. Returns `false` if the command line was already closed.
    pub(super) fn close(&mut self) -> bool {
        self.recalled = None;
        self.line.take().is_some()
    }

    /// Handles a key. If the key completes the line, returns the line.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<String> {
        let line = self.line.as_mut()?;
        match key.code {
            KeyCode::Enter => {
                let typed = line.value().to_owned();
                self.close();
                if !typed.trim().is_empty() && self.history.last() != Some(&typed) {
                    self.history.push(typed.clone());
                }
                return Some(typed);
            }
            KeyCode::Esc => drop(self.close()),
            KeyCode::Backspace if line.value().is_empty() => drop(self.close()),
            KeyCode::Up => self.recall(false),
            KeyCode::Down => self.recall(true),
            _ => {
                if let Some(request) = edit(key) {
                    line.handle(request);
                }
            }
        }
        None
    }

    /// Shows the next or the previous command of the history. After the last command, shows the unfinished line.
    fn recall(&mut self, forward: bool) {
        let Some(line) = &mut self.line else { return };
        let last = self.history.len();
        let at = self.recalled.unwrap_or(last);
        if at == last {
            self.draft = line.value().to_owned();
        }
        let at = if forward { (at + 1).min(last) } else { at.saturating_sub(1) };
        self.recalled = Some(at);
        *line = self.history.get(at).unwrap_or(&self.draft).clone().into();
    }

    /// Completes the word before the cursor up to the longest common prefix of the candidates. If several candidates
    /// exist, returns the candidates.
    pub(super) fn complete(&mut self, debugger: &Debugger) -> Option<String> {
        let line = self.line.as_mut()?;
        let (before, after): (String, String) = (
            line.value().chars().take(line.cursor()).collect(),
            line.value().chars().skip(line.cursor()).collect(),
        );
        let fitting = completions(debugger, &before);
        let first = fitting.first()?;
        let agree = |end: &usize| {
            first.get(..*end).is_some_and(|begin| fitting.iter().all(|name| name.starts_with(begin)))
        };
        let common = (0..=first.len()).rev().find(agree).unwrap_or(0);
        let end = if fitting.len() == 1 { " " } else { "" };
        let kept = &before[..before.len() - last_word(&before).len()];
        let completed = format!("{kept}{}{end}", &first[..common]);
        let cursor = completed.chars().count();
        *line = Input::new(completed + &after).with_cursor(cursor);
        (fitting.len() > 1).then(|| fitting.join("  "))
    }

    /// Draws the line and the cursor. If the line does not fit, draws only the part around the cursor.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(line) = &self.line else { return };
        let room = usize::from(area.width).saturating_sub(BEFORE.len() + 1);
        let skipped = line.visual_scroll(room);
        let before = Rect { width: area.width.min(BEFORE.len() as u16), ..area };
        let (x, width) = (area.x + before.width, area.width - before.width);
        frame.render_widget(Paragraph::new(BEFORE), before);
        let text = Paragraph::new(line.value()).scroll((0, skipped as u16));
        frame.render_widget(text, Rect { x, width, ..area });
        frame.set_cursor_position((x + line.visual_cursor().saturating_sub(skipped) as u16, area.y));
    }

    /// Returns the line.
    #[cfg(test)]
    pub(super) fn text(&self) -> Option<&str> {
        self.line.as_ref().map(Input::value)
    }
}

/// Returns the edit for a key. Keys with Ctrl have the same effects as in readline.
fn edit(key: KeyEvent) -> Option<InputRequest> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Left if is_control => InputRequest::GoToPrevWord,
        KeyCode::Right if is_control => InputRequest::GoToNextWord,
        KeyCode::Char('a') if is_control => InputRequest::GoToStart,
        KeyCode::Char('e') if is_control => InputRequest::GoToEnd,
        KeyCode::Char('k') if is_control => InputRequest::DeleteTillEnd,
        KeyCode::Char('u') if is_control => InputRequest::DeleteFromStart,
        KeyCode::Char('w') if is_control => InputRequest::DeletePrevWord,
        KeyCode::Char('y') if is_control => InputRequest::Yank,
        KeyCode::Left => InputRequest::GoToPrevChar,
        KeyCode::Right => InputRequest::GoToNextChar,
        KeyCode::Home => InputRequest::GoToStart,
        KeyCode::End => InputRequest::GoToEnd,
        KeyCode::Backspace => InputRequest::DeletePrevChar,
        KeyCode::Delete => InputRequest::DeleteNextChar,
        KeyCode::Char(letter) if !is_control => InputRequest::InsertChar(letter),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types keys. `<>` encloses the name of a key, or a letter that is typed with Ctrl.
    fn typed(prompt: &mut Prompt, keys: &str) {
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let (name, after) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
                Some(named) => named,
                None => rest.split_at(first.len_utf8()),
            };
            let letter = name.chars().last().expect("a key");
            let (code, modifiers) = match name {
                "left" => (KeyCode::Left, KeyModifiers::NONE),
                "right" => (KeyCode::Right, KeyModifiers::NONE),
                "home" => (KeyCode::Home, KeyModifiers::NONE),
                "end" => (KeyCode::End, KeyModifiers::NONE),
                "up" => (KeyCode::Up, KeyModifiers::NONE),
                "down" => (KeyCode::Down, KeyModifiers::NONE),
                "enter" => (KeyCode::Enter, KeyModifiers::NONE),
                "delete" => (KeyCode::Delete, KeyModifiers::NONE),
                "back" => (KeyCode::Backspace, KeyModifiers::NONE),
                _ if name.starts_with("^") => (KeyCode::Char(letter), KeyModifiers::CONTROL),
                _ => (KeyCode::Char(letter), KeyModifiers::NONE),
            };
            prompt.key(KeyEvent::new(code, modifiers));
            rest = after;
        }
    }

    /// Regression test. In an earlier version, the line did not have a cursor.
    #[test]
    fn the_line_is_edited_at_a_cursor() {
        for (keys, wanted) in [
            ("stp<left>e", "step"),
            ("tep<home>s", "step"),
            ("stxep<left><left><left><delete>", "step"),
            ("sxtep<home><right><right><back>", "step"),
            ("why 3<^u>step", "step"),
            ("why 3<left><^u>", "3"),
            ("print $r1 + 2<^w>5", "print $r1 + 5"),
            ("tep<^a>s<^e> 2", "step 2"),
            ("step 12<left><^k>", "step 1"),
            ("é<left><right><back>", ""),
            ("<home><left><delete><end><right>", ""),
        ] {
            let mut prompt = Prompt::default();
            prompt.open();
            typed(&mut prompt, keys);
            assert_eq!(prompt.text(), Some(wanted), "{keys}");
        }
    }

    #[test]
    fn the_history_keeps_the_line_that_was_being_typed() {
        let mut prompt = Prompt::default();
        for line in ["step", "why"] {
            prompt.open();
            typed(&mut prompt, &format!("{line}<enter>"));
        }
        prompt.open();
        typed(&mut prompt, "re");
        for (key, wanted) in [
            ("<up>", "why"),
            ("<up>", "step"),
            ("<up>", "step"),
            ("<down>", "why"),
            ("<down>", "re"),
            ("<down>", "re"),
        ] {
            typed(&mut prompt, key);
            assert_eq!(prompt.text(), Some(wanted));
        }
    }
}
