//! The debugger's screen: program, lanes, stack, registers, what was answered, and a command line.

use std::collections::VecDeque;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use reconverge_simt::{Lane, Why};
use reconverge_workbench::debugger::command::{self, completions, listing};
use reconverge_workbench::debugger::{Debugger, Halt};
use reconverge_workbench::session::GroupState;

/// Lines of answers that are kept.
const KEPT: usize = 1000;

/// A key and the command that it stands for, for the help line.
const KEYS: [(char, &str); 12] = [
    ('s', "step"),
    ('n', "over"),
    ('o', "out"),
    ('f', "follow"),
    ('b', "back"),
    ('F', "back-follow"),
    ('c', "continue"),
    ('C', "back-continue"),
    ('d', "stop diverge"),
    ('y', "why"),
    ('k', "stack"),
    ('r', "registers"),
];

/// What is on the screen besides the launch.
#[derive(Debug, Default)]
pub(super) struct Screen {
    answers: VecDeque<String>,
    /// The command line, while one is typed.
    typed: Option<String>,
    history: Vec<String>,
    /// Place in the history while it is walked through.
    recalled: Option<usize>,
    /// What follows the last `memory` command; the first buffer before there is one.
    memory: Option<String>,
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    Quit,
}

impl Screen {
    /// Takes a key.
    pub(super) fn key(&mut self, debugger: &mut Debugger, key: KeyEvent) -> Asked {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Asked::Quit,
                _ => Asked::Nothing,
            };
        }
        let Some(typed) = &mut self.typed else { return self.shortcut(debugger, key.code) };
        match key.code {
            KeyCode::Enter => {
                let line = std::mem::take(typed);
                self.typed = None;
                self.recalled = None;
                if !line.trim().is_empty() {
                    self.history.push(line.clone());
                }
                return self.carry_out(debugger, &line);
            }
            KeyCode::Esc => self.typed = None,
            KeyCode::Backspace if typed.pop().is_none() => self.typed = None,
            KeyCode::Tab => match completions(typed)[..] {
                [only] => *typed = format!("{only} "),
                [] => {}
                ref several => {
                    let several = several.join("  ");
                    self.answer(&several);
                }
            },
            KeyCode::Up | KeyCode::Down => {
                let last = self.history.len();
                let at = self.recalled.unwrap_or(last);
                let at = if key.code == KeyCode::Up { at.saturating_sub(1) } else { (at + 1).min(last) };
                self.recalled = Some(at);
                self.typed = Some(self.history.get(at).cloned().unwrap_or_default());
            }
            KeyCode::Char(letter) => typed.push(letter),
            _ => {}
        }
        Asked::Nothing
    }

    fn shortcut(&mut self, debugger: &mut Debugger, key: KeyCode) -> Asked {
        let lane = debugger.lane().index();
        match key {
            KeyCode::Char('q') => return Asked::Quit,
            KeyCode::Char(':') => self.typed = Some(String::new()),
            KeyCode::Char('?' | 'h') => return self.carry_out(debugger, "help"),
            KeyCode::Right => return self.carry_out(debugger, "step"),
            KeyCode::Left => return self.carry_out(debugger, "back"),
            KeyCode::Down => _ = debugger.choose_lane(Lane((lane + 1) as u8)),
            KeyCode::Up => _ = debugger.choose_lane(Lane(lane.saturating_sub(1) as u8)),
            KeyCode::Char(letter) => {
                if let Some((_, line)) = KEYS.iter().find(|(known, _)| *known == letter) {
                    return self.carry_out(debugger, line);
                }
            }
            _ => {}
        }
        Asked::Nothing
    }

    fn carry_out(&mut self, debugger: &mut Debugger, line: &str) -> Asked {
        self.answer(&format!("> {line}"));
        match command::run(debugger, line) {
            Ok(answer) if answer.quit => return Asked::Quit,
            Ok(answer) => {
                self.answer(&answer.text);
                if let Some(("memory" | "m", place)) = line.trim().split_once(' ') {
                    self.memory = Some(place.to_owned());
                }
                if answer.halt == Some(Halt::End) {
                    self.answer("go back with `back` or `goto`");
                }
            }
            Err(error) => self.answer(&error.to_string()),
        }
        Asked::Nothing
    }

    fn answer(&mut self, text: &str) {
        self.answers.extend(text.lines().map(str::to_owned));
        while self.answers.len() > KEPT {
            self.answers.pop_front();
        }
    }

    /// Draws everything.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, debugger: &Debugger) {
        let [top, answers, line] =
            Layout::vertical([Constraint::Min(12), Constraint::Percentage(28), Constraint::Length(2)])
                .areas(frame.area());
        let [program, state] =
            Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(top);
        let lanes_height = (debugger.width() as u16).div_ceil(16) * 2 + 3;
        let [lanes, stack, registers] =
            Layout::vertical([Constraint::Length(lanes_height), Constraint::Length(7), Constraint::Min(4)])
                .areas(state);
        let around = debugger.issue().map(|issue| issue.pc);
        let many = usize::from(program.height.saturating_sub(2)) / 2;
        let text = listing(debugger, around, many);
        let lines: Vec<Line<'_>> = text
            .lines()
            .map(|line| {
                let style = if line.starts_with('>') {
                    Style::new().add_modifier(Modifier::REVERSED)
                } else {
                    Style::new()
                };
                Line::styled(line.to_owned(), style)
            })
            .collect();
        frame.render_widget(Paragraph::new(lines).block(titled("program")), program);
        self.draw_lanes(frame, debugger, lanes);
        let rows = command::stack(debugger);
        frame.render_widget(Paragraph::new(rows).block(titled("stack, innermost first")), stack);
        let place = self.memory.clone().or_else(|| first_memory(debugger));
        let (registers, memory) = match place {
            None => (registers, None),
            Some(place) => {
                let [registers, memory] =
                    Layout::vertical([Constraint::Min(4), Constraint::Length(6)]).areas(registers);
                (registers, Some((place, memory)))
            }
        };
        let values = command::all_registers(debugger);
        frame.render_widget(Paragraph::new(values).block(titled("registers")), registers);
        if let Some((place, memory)) = memory {
            let rows =
                command::memory(debugger, &place.split_whitespace().collect::<Vec<_>>()).unwrap_or_default();
            frame.render_widget(Paragraph::new(rows).block(titled(&format!("memory {place}"))), memory);
        }
        let room = usize::from(answers.height.saturating_sub(2));
        let shown: Vec<Line<'_>> = self
            .answers
            .iter()
            .skip(self.answers.len().saturating_sub(room))
            .map(|line| Line::raw(line.as_str()))
            .collect();
        frame.render_widget(Paragraph::new(shown).block(titled("answers")), answers);
        let bottom = match &self.typed {
            Some(typed) => vec![
                Line::raw(format!(": {typed}_")),
                Line::raw("Enter carries out, Tab completes, Esc leaves"),
            ],
            None => {
                let keys = KEYS.iter().map(|(key, line)| format!("{key} {line}")).collect::<Vec<_>>();
                vec![Line::raw(keys.join("  ")), Line::raw("← → step  ↑ ↓ lane  : command  ? help  q quit")]
            }
        };
        frame.render_widget(Paragraph::new(bottom), line);
    }

    fn draw_lanes(&self, frame: &mut Frame<'_>, debugger: &Debugger, area: Rect) {
        let group = debugger.group();
        let running = debugger.stepping().state(group) == GroupState::Running;
        let mut lines = Vec::new();
        for first in (0..debugger.width()).step_by(16) {
            let mut numbers = Vec::new();
            let mut states = Vec::new();
            for lane in first..debugger.width().min(first + 16) {
                let lane = Lane(lane as u8);
                let (letter, colour) = state(running.then(|| debugger.stepping().why(group, lane)).flatten());
                let chosen = if lane == debugger.lane() { Modifier::REVERSED } else { Modifier::empty() };
                numbers.push(Span::styled(format!("{:>3}", lane.0), Style::new().add_modifier(chosen)));
                states.push(Span::styled(format!("{letter:>3}"), Style::new().fg(colour)));
            }
            lines.push(Line::from(numbers));
            lines.push(Line::from(states));
        }
        lines.push(Line::raw(format!("lane {}: {}", debugger.lane().0, debugger.why(debugger.lane()))));
        let title = format!("lanes of group {group}, after {} instructions", debugger.position());
        frame.render_widget(Paragraph::new(lines).block(titled(&title)), area);
    }
}

/// The first memory of the launch that has something in it.
fn first_memory(debugger: &Debugger) -> Option<String> {
    let (stepping, group, lane) = (debugger.stepping(), debugger.group(), debugger.lane());
    stepping.spaces().iter().find_map(|space| {
        let buffers = stepping.buffers(space.name, group, lane);
        let at = buffers.first().map_or(0, |(_, place)| place.start as u32);
        let there = !stepping.memory(space.name, group, lane, at, 1).is_empty();
        there.then(|| format!("{} {at:#x}", space.name))
    })
}

fn titled(title: &str) -> Block<'_> {
    Block::new().borders(Borders::ALL).title(title.to_owned())
}

/// A letter and a colour for what a lane does; the letters are those of the report page.
fn state(why: Option<Why>) -> (char, Color) {
    let why = why.unwrap_or(Why::Uncovered);
    let colour = match why {
        Why::Active => Color::LightBlue,
        Why::Branch { .. } => Color::Yellow,
        Why::Break => Color::LightRed,
        Why::Continue => Color::Magenta,
        Why::Parked { .. } => Color::LightYellow,
        Why::Exited | Why::Uncovered => Color::DarkGray,
    };
    (why.letter(), colour)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use reconverge_simt::Options;
    use reconverge_workbench::kernels::KERNELS;

    use super::*;

    fn drawn(screen: &Screen, debugger: &Debugger) -> String {
        let mut terminal = Terminal::new(TestBackend::new(140, 50)).unwrap();
        terminal.draw(|frame| screen.draw(frame, debugger)).unwrap();
        terminal.backend().to_string()
    }

    fn press(screen: &mut Screen, debugger: &mut Debugger, keys: &str) -> Asked {
        let mut asked = Asked::Nothing;
        for key in keys.chars() {
            let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
            asked = screen.key(debugger, KeyEvent::new(code, KeyModifiers::NONE));
        }
        asked
    }

    #[test]
    fn the_screen_shows_program_lanes_and_answers_of_every_machine() {
        for kernel in &KERNELS {
            let opened = kernel.open().unwrap();
            let session = kernel.prepare(1 << 14).unwrap();
            let program = &opened.image.programs[0];
            let mut debugger = Debugger::new(&session, &opened.target, program, &Options::default()).unwrap();
            let mut screen = Screen::default();
            press(&mut screen, &mut debugger, "dc");
            let text = drawn(&screen, &debugger);
            assert!(text.contains("lanes part"), "{text}");
            assert!(text.contains("lanes of group"), "{text}");
            assert_eq!(text.contains("memory g "), kernel.isa.name() == "tesla", "{text}");
            assert!(text.lines().any(|line| line.contains('A')), "{text}");
            press(&mut screen, &mut debugger, ":why 1\n");
            assert!(drawn(&screen, &debugger).contains("lane 1:"), "{}", drawn(&screen, &debugger));
            assert_eq!(press(&mut screen, &mut debugger, "q"), Asked::Quit);
        }
    }

    #[test]
    fn a_wrong_command_is_answered_and_kept_in_the_history() {
        let kernel = &KERNELS[0];
        let opened = kernel.open().unwrap();
        let session = kernel.prepare(256).unwrap();
        let program = &opened.image.programs[0];
        let mut debugger = Debugger::new(&session, &opened.target, program, &Options::default()).unwrap();
        let mut screen = Screen::default();
        press(&mut screen, &mut debugger, ":stpe\n:");
        screen.key(&mut debugger, KeyEvent::new(KeyCode::Up, KeyModifiers::NONE));
        let text = drawn(&screen, &debugger);
        assert!(text.contains("did you mean `step`"), "{text}");
        assert!(text.contains(": stpe_"), "{text}");
    }
}
