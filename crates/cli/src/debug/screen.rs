//! The debugger's screen. The screen shows the program or source, lanes, stack, registers or memory, answers and a
//! command line. The screen fits on a terminal of 80x24 characters.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Wrap};
use reconverge_simt::{Lane, Why};
use reconverge_workbench::debugger::command::{self, ProgramLine};
use reconverge_workbench::debugger::stop::On;
use reconverge_workbench::debugger::table::{self, Notation, TableRow};
use reconverge_workbench::debugger::{Debugger, Halt};
use reconverge_workbench::session::GroupState;

use super::prompt::Prompt;

/// Maximum number of answer lines that are kept.
const KEPT: usize = 1000;

/// Keys, and the command that each key executes.
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

/// The line of keys, which fits 80 columns.
const KEY_LINE: &str = "s step  b back  c continue  f follow  n over  y why  v source  : command  ? help";

/// The first part of the screen's help, before the keys.
const SCREEN_HELP: &str = "\
Keys of the screen
  → ← step, back                ↑ ↓ choose a lane, or scroll the chosen pane
  Tab choose a pane             PgUp PgDn Home End scroll it
  z enlarge the pane            v source or listing
  m registers or memory         x hex, decimal, float
  : type a command              q quit
  Keys typed while a movement runs are carried out after it, in their order.
  Ctrl-C or Escape ends the movement and drops them.
The command line: ← → Home End Ctrl-← Ctrl-→ move the cursor; Backspace, Delete,
  Ctrl-U (to the start), Ctrl-K (to the end), Ctrl-W (a word) erase; ↑ ↓ recall
  commands; Tab completes; Ctrl-C or Escape drops the line.
";

/// The part of the screen's help after the keys.
const MOUSE_HELP: &str = "\
Mouse: a click on a line sets or removes a stop, on a lane chooses it, on a pane
  chooses that; the wheel scrolls. Most terminals select text with Shift.
Lanes: A active, b off by a branch, k left the loop, c waits for the next
  iteration, p parked, x exited, u uncovered
Registers: a value that the last movement changed has a * after it.

Commands, after `:`
";

/// A part of the screen that scrolls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Pane {
    #[default]
    Program,
    Lanes,
    Stack,
    Values,
    Answers,
}

const PANES: [Pane; 5] = [Pane::Program, Pane::Lanes, Pane::Stack, Pane::Values, Pane::Answers];

/// The state of the screen, without the launch.
#[derive(Debug, Default)]
pub(super) struct Screen {
    answers: VecDeque<String>,
    /// Number of lines in the last answer.
    last_answer: usize,
    prompt: Prompt,
    /// The arguments of the last `memory` command. Before the first `memory` command, the value is `None`. The screen
    /// then shows the first memory that is not empty.
    memory: Option<String>,
    /// Whether the screen shows the listing instead of the source.
    shows_listing: bool,
    /// Whether the screen shows memory instead of registers. This value has an effect only if the screen has no room
    /// for both memory and registers.
    shows_memory: bool,
    /// The notation of values that the user has selected, if any.
    notation: Option<Notation>,
    chosen: Pane,
    /// Whether the screen shows only the selected pane.
    is_enlarged: bool,
    /// Number of lines by which each pane is scrolled. In the program pane, the number counts from the next
    /// instruction. In the pane of the answers, the number counts from the end of the answers.
    scrolled: BTreeMap<Pane, isize>,
    /// Index of the first visible line of the help, or `None` if the help is not shown.
    help: Option<usize>,
    /// Index of the first visible lane in the table of registers.
    first_lane: usize,
    /// Indices of the registers that had a value other than 0 at any time. The indices follow the machine's order of
    /// registers.
    known: BTreeSet<usize>,
    /// The number of a group, and the values of the group's registers before the last movement.
    before: Option<(usize, BTreeMap<String, Vec<u32>>)>,
    places: ScreenParts,
}

/// Positions of lines, lanes and panes on the screen. The code that handles the mouse uses these positions.
#[derive(Debug, Default)]
struct ScreenParts {
    panes: Vec<(Pane, Rect)>,
    /// For each program line on the screen, the row and the address.
    lines: Vec<(u16, u32)>,
    /// Cell of each lane on the screen.
    lanes: Vec<(Rect, Lane)>,
}

/// The action that a key requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    Quit,
}

impl Screen {
    /// Handles a key.
    pub(super) fn key(&mut self, debugger: &mut Debugger, key: KeyEvent) -> Asked {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('d') if is_control => return Asked::Quit,
            KeyCode::Char('c') if is_control => return self.cancel(),
            _ if self.help.is_some() => self.help_key(key.code),
            KeyCode::Tab if self.prompt.is_open() => {
                if let Some(several) = self.prompt.complete(debugger) {
                    self.answer(&several);
                }
            }
            _ if self.prompt.is_open() => {
                if let Some(line) = self.prompt.key(key) {
                    return self.carry_out(debugger, &line);
                }
            }
            _ if is_control => {}
            code => return self.shortcut(debugger, code),
        }
        Asked::Nothing
    }

    /// Handles Ctrl-C while the program does not run. Closes the command line or the help. If both are closed, prints
    /// the key that ends the debugger.
    fn cancel(&mut self) -> Asked {
        if self.prompt.close() {
            return Asked::Nothing;
        }
        if self.help.take().is_none() {
            self.last_answer = 0;
            self.scrolled.remove(&Pane::Answers);
            self.answer("q quits");
        }
        Asked::Nothing
    }

    fn help_key(&mut self, key: KeyCode) {
        let Some(first) = &mut self.help else { return };
        match key {
            KeyCode::Up | KeyCode::Char('k') => *first = first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => *first += 1,
            KeyCode::PageUp | KeyCode::Char('b') => *first = first.saturating_sub(20),
            KeyCode::PageDown | KeyCode::Char(' ') => *first += 20,
            KeyCode::Home => *first = 0,
            KeyCode::End => *first = usize::MAX / 2,
            _ => self.help = None,
        }
    }

    fn shortcut(&mut self, debugger: &mut Debugger, key: KeyCode) -> Asked {
        match key {
            KeyCode::Char('q') => return Asked::Quit,
            KeyCode::Char(':') => self.prompt.open(),
            KeyCode::Char('?' | 'h') => self.help = Some(0),
            KeyCode::Char('v') => {
                self.shows_listing = !self.shows_listing;
                self.scrolled.remove(&Pane::Program);
            }
            KeyCode::Char('m') => self.shows_memory = !self.shows_memory,
            KeyCode::Char('x') => self.notation = Some(self.notation(debugger).next()),
            KeyCode::Char('z') => self.is_enlarged = !self.is_enlarged,
            KeyCode::Esc => self.is_enlarged = false,
            KeyCode::Tab | KeyCode::BackTab => {
                let at = PANES.iter().position(|pane| *pane == self.chosen).unwrap_or(0);
                let next = if key == KeyCode::Tab { at + 1 } else { at + PANES.len() - 1 };
                self.chosen = PANES[next % PANES.len()];
            }
            KeyCode::Right => return self.carry_out(debugger, "step"),
            KeyCode::Left => return self.carry_out(debugger, "back"),
            KeyCode::Down | KeyCode::Up => {
                let down = key == KeyCode::Down;
                match self.chosen {
                    Pane::Program | Pane::Lanes => choose_next(debugger, down),
                    pane => self.scroll(pane, if down { 1 } else { -1 }),
                }
            }
            KeyCode::PageDown => self.scroll(self.chosen, self.page()),
            KeyCode::PageUp => self.scroll(self.chosen, -self.page()),
            KeyCode::Home => self.scroll(self.chosen, isize::MIN / 2),
            KeyCode::End => self.scroll(self.chosen, isize::MAX / 2),
            KeyCode::Char(letter) => {
                if let Some((_, line)) = KEYS.iter().find(|(known, _)| *known == letter) {
                    return self.carry_out(debugger, line);
                }
            }
            _ => {}
        }
        Asked::Nothing
    }

    /// Handles a button or the wheel of the mouse.
    pub(super) fn mouse(&mut self, debugger: &mut Debugger, mouse: MouseEvent) {
        let at = Position { x: mouse.column, y: mouse.row };
        let wheel = match mouse.kind {
            MouseEventKind::ScrollDown => 3,
            MouseEventKind::ScrollUp => -3,
            MouseEventKind::Down(MouseButton::Left) => 0,
            _ => return,
        };
        if let Some(first) = &mut self.help {
            *first = first.saturating_add_signed(wheel);
            return;
        }
        let panes = &self.places.panes;
        let Some(pane) = panes.iter().find(|(_, area)| area.contains(at)).map(|(pane, _)| *pane) else {
            return;
        };
        if wheel != 0 {
            self.scroll(pane, wheel);
            return;
        }
        self.chosen = pane;
        if let Some((_, lane)) = self.places.lanes.iter().find(|(cell, _)| cell.contains(at)) {
            debugger.choose_lane(*lane);
            return;
        }
        let line = self.places.lines.iter().find(|(row, _)| pane == Pane::Program && *row == at.y);
        if let Some((_, address)) = line {
            self.toggle_stop(debugger, *address);
        }
    }

    /// Sets a stop at an address. If a stop at this address exists, removes this stop.
    fn toggle_stop(&mut self, debugger: &mut Debugger, address: u32) {
        let known = debugger.stops.iter().find(|stop| stop.on == On::Address(address));
        let line = match known.map(|stop| stop.number) {
            Some(number) => format!("delete {number}"),
            None => format!("break {}", debugger.spelled(address)),
        };
        self.carry_out(debugger, &line);
    }

    /// Returns the number of lines in a page of the selected pane.
    fn page(&self) -> isize {
        let area = self.places.panes.iter().find(|(pane, _)| *pane == self.chosen);
        area.map_or(10, |(_, area)| area.height as isize - 2).max(1)
    }

    /// Scrolls a pane down, or up if `by` is negative.
    fn scroll(&mut self, pane: Pane, by: isize) {
        let scrolled = self.scrolled.entry(pane).or_default();
        *scrolled = scrolled.saturating_add(by);
    }

    fn carry_out(&mut self, debugger: &mut Debugger, line: &str) -> Asked {
        if matches!(line.trim(), "help" | "h") {
            self.help = Some(0);
            return Asked::Nothing;
        }
        self.answer(&format!("> {line}"));
        self.last_answer = 0;
        self.scrolled.remove(&Pane::Answers);
        let before = (debugger.group(), values(debugger));
        match command::run(debugger, line) {
            Ok(answer) if answer.quit => return Asked::Quit,
            Ok(answer) => {
                self.answer(&answer.text);
                if let Some(("memory" | "m", place)) = line.trim().split_once(' ') {
                    self.memory = Some(place.to_owned());
                    self.shows_memory = true;
                }
                if answer.halt == Some(Halt::End) {
                    self.answer("go back with `back` or `goto`");
                }
                if answer.halt.is_some() || line.starts_with("set ") {
                    self.before = Some(before);
                    self.scrolled.remove(&Pane::Program);
                }
            }
            Err(error) => self.answer(&error.to_string()),
        }
        Asked::Nothing
    }

    fn answer(&mut self, text: &str) {
        self.answers.extend(text.lines().map(str::to_owned));
        self.last_answer += text.lines().count();
        while self.answers.len() > KEPT {
            self.answers.pop_front();
        }
    }

    // ---- Drawing

    /// Draws the whole screen.
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, debugger: &Debugger) {
        self.places = ScreenParts::default();
        let bars = [Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
        let [head, middle, line] = Layout::vertical(bars).areas(frame.area());
        draw_head(frame, debugger, head);
        self.draw_line(frame, line);
        if self.help.is_some() {
            self.draw_help(frame, middle);
            return;
        }
        if self.is_enlarged {
            self.draw_pane(frame, debugger, self.chosen, middle);
            return;
        }
        let tall = middle.height >= 34;
        let shares = if tall { [3, 3, 2] } else { [5, 4, 2] };
        let [top, values, answers] = Layout::vertical(shares.map(Constraint::Fill)).areas(middle);
        let columns = [Constraint::Fill(1), Constraint::Length(lanes_width(middle.width))];
        let [program, state] = Layout::horizontal(columns).spacing(1).areas(top);
        let rows = debugger.width().div_ceil(lanes_of_a_row(state.width)) as u16;
        let [lanes, stack] =
            Layout::vertical([Constraint::Length(rows + 3), Constraint::Min(2)]).areas(state);
        self.draw_pane(frame, debugger, Pane::Program, program);
        self.draw_pane(frame, debugger, Pane::Lanes, lanes);
        self.draw_pane(frame, debugger, Pane::Stack, stack);
        if tall && self.memory_place(debugger).is_some() {
            let [registers, memory] =
                Layout::vertical([Constraint::Fill(1), Constraint::Length(6)]).areas(values);
            self.places.panes.push((Pane::Values, registers));
            self.draw_registers(frame, debugger, registers);
            self.draw_memory(frame, debugger, memory);
        } else {
            self.draw_pane(frame, debugger, Pane::Values, values);
        }
        self.draw_pane(frame, debugger, Pane::Answers, answers);
    }

    fn draw_pane(&mut self, frame: &mut Frame<'_>, debugger: &Debugger, pane: Pane, area: Rect) {
        self.places.panes.push((pane, area));
        match pane {
            Pane::Program => self.draw_program(frame, debugger, area),
            Pane::Lanes => self.draw_lanes(frame, debugger, area),
            Pane::Stack => self.draw_stack(frame, debugger, area),
            Pane::Values if self.shows_memory && self.memory_place(debugger).is_some() => {
                self.draw_memory(frame, debugger, area);
            }
            Pane::Values => self.draw_registers(frame, debugger, area),
            Pane::Answers => self.draw_answers(frame, area),
        }
    }

    /// Returns the border of a pane, with the title of the pane. The border of the selected pane is highlighted.
    fn border(&self, pane: Pane, title: &str) -> Block<'static> {
        let style = match pane == self.chosen {
            true => Style::new().add_modifier(Modifier::BOLD).fg(Color::LightBlue),
            false => Style::new().fg(Color::Gray),
        };
        Block::new().borders(Borders::TOP).border_style(style).title(format!(" {title} "))
    }

    /// Returns the index of the first visible line of a pane. The pane has `all` lines and shows `room` lines.
    fn first_line(&mut self, pane: Pane, all: usize, room: usize) -> usize {
        let last = all.saturating_sub(room) as isize;
        let scrolled = self.scrolled.entry(pane).or_default();
        *scrolled = (*scrolled).clamp(0, last);
        *scrolled as usize
    }

    fn draw_program(&mut self, frame: &mut Frame<'_>, debugger: &Debugger, area: Rect) {
        let place = debugger.place();
        let (title, lines, next) = match debugger.source().filter(|_| !self.shows_listing) {
            Some(source) => {
                let next = place.and_then(|address| source.line_of(address)).map(|line| line - 1);
                (crate::shown::name(&source.name()).into_owned(), command::source_lines(debugger), next)
            }
            None => {
                let lines = command::program_lines(debugger);
                let next = place.and_then(|at| lines.iter().position(|line| line.address == Some(at)));
                ("program".to_owned(), lines, next)
            }
        };
        let room = usize::from(area.height.saturating_sub(1));
        let last = lines.len().saturating_sub(room) as isize;
        let centred = (next.unwrap_or(0) as isize - room as isize / 2).clamp(0, last);
        let scrolled = self.scrolled.entry(Pane::Program).or_default();
        let first = centred.saturating_add(*scrolled).clamp(0, last);
        *scrolled = first - centred;
        let first = first as usize;
        let mut shown = Vec::new();
        for (row, line) in lines.iter().skip(first).take(room).enumerate() {
            if let Some(address) = line.address {
                self.places.lines.push((area.y + 1 + row as u16, address));
            }
            shown.push(program_line(line, Some(first + row) == next));
        }
        frame.render_widget(Paragraph::new(shown).block(self.border(Pane::Program, &title)), area);
    }

    fn draw_lanes(&mut self, frame: &mut Frame<'_>, debugger: &Debugger, area: Rect) {
        let group = debugger.group();
        let per_row = lanes_of_a_row(area.width);
        let mut lines = Vec::new();
        for first in (0..debugger.width()).step_by(per_row) {
            let mut cells = vec![Span::raw(format!("{first:>3}"))];
            let y = area.y + 1 + lines.len() as u16;
            for lane in first..debugger.width().min(first + per_row) {
                let number = Lane(lane as u8);
                let (letter, colour) = state(debugger.stepping().why(group, number));
                let is_chosen = number == debugger.lane();
                let chosen = if is_chosen { Modifier::REVERSED } else { Modifier::empty() };
                cells.push(Span::raw(" "));
                cells.push(Span::styled(letter.to_string(), Style::new().fg(colour).add_modifier(chosen)));
                let x = area.x + 3 + 2 * (lane - first) as u16;
                self.places.lanes.push((Rect { x, y, width: 2, height: 1 }, number));
            }
            lines.push(Line::from(cells));
        }
        lines.push(Line::raw(format!("lane {}: {}", debugger.lane().0, debugger.why(debugger.lane()))));
        let (room, all) = (usize::from(area.height.saturating_sub(1)), lines.len() + 1);
        let first = self.first_line(Pane::Lanes, all, room) as u16;
        self.places.lanes.retain_mut(|(cell, _)| {
            let is_shown = cell.y > area.y + first;
            cell.y = cell.y.saturating_sub(first);
            is_shown
        });
        let title = format!("lanes of group {group}");
        let lanes = Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((first, 0));
        frame.render_widget(lanes.block(self.border(Pane::Lanes, &title)), area);
    }

    fn draw_stack(&mut self, frame: &mut Frame<'_>, debugger: &Debugger, area: Rect) {
        let lines = folded(command::stack(debugger).lines(), area.width);
        let room = usize::from(area.height.saturating_sub(1));
        let first = self.first_line(Pane::Stack, lines.len(), room);
        let rows = Paragraph::new(lines).scroll((first as u16, 0));
        frame.render_widget(rows.block(self.border(Pane::Stack, "stack, innermost first")), area);
    }

    /// Draws a table with one column per lane. The table has one row for each register that had a value other than 0 at
    /// any time.
    fn draw_registers(&mut self, frame: &mut Frame<'_>, debugger: &Debugger, area: Rect) {
        let group = debugger.group();
        let all = table::rows(debugger, group, true);
        let used = all.iter().enumerate().filter(|(_, row)| row.values.iter().any(|value| *value != 0));
        self.known.extend(used.map(|(at, _)| at));
        let rows: Vec<&TableRow> = self.known.iter().filter_map(|at| all.get(*at)).collect();
        let names = rows.iter().map(|row| row.name.len()).max().unwrap_or(4);
        let notation = self.notation(debugger);
        let cell = if notation == Notation::Hex { 8 } else { 10 };
        let columns = (usize::from(area.width).saturating_sub(names + 1) / (cell + 2)).max(1);
        let lanes = debugger.stepping().lanes(group).len();
        self.show_lane(debugger.lane().index(), columns, lanes);
        let shown = self.first_lane..lanes.min(self.first_lane + columns);
        for (column, lane) in shown.clone().enumerate() {
            let x = area.x + (names + column * (cell + 2)) as u16;
            let (width, height) = (cell as u16 + 2, area.height.saturating_sub(1));
            self.places.lanes.push((Rect { x, y: area.y + 1, width, height }, Lane(lane as u8)));
        }
        let before = self.before.as_ref().filter(|(of, _)| *of == group).map(|(_, values)| values);
        let mut lines: Vec<Line<'_>> = rows
            .iter()
            .map(|row| {
                let mut cells = vec![Span::raw(format!("{:names$}", row.name))];
                let old = before.map(|before| before.get(&row.name));
                for lane in shown.clone() {
                    let value = row.values.get(lane).copied().unwrap_or(0);
                    // `before` has only registers that were not 0 in all lanes. If `before` does not have a register,
                    // the old values of the register are 0.
                    let old = old.map(|old| old.and_then(|old| old.get(lane)).copied().unwrap_or(0));
                    let is_changed = old.is_some_and(|old| old != value);
                    let style = match is_changed {
                        true => Style::new().fg(Color::LightYellow).add_modifier(Modifier::BOLD),
                        false => lane_style(debugger, lane),
                    };
                    let mark = if is_changed { '*' } else { ' ' };
                    let text = notation.written(row.register, value);
                    cells.push(Span::styled(format!(" {text:>cell$}{mark}"), style));
                }
                Line::from(cells)
            })
            .collect();
        if lines.is_empty() {
            lines.push(Line::raw("all registers are 0"));
        }
        let (room, count) = (usize::from(area.height.saturating_sub(2)), lines.len());
        let first = self.first_line(Pane::Values, count, room);
        let last = count.min(first + room);
        let part = if last - first == count {
            String::new()
        } else {
            format!(", {} to {last} of {count}", first + 1)
        };
        let (from, to, notation) = (shown.start, shown.end.saturating_sub(1), notation.name());
        let title = format!("registers of lanes {from} to {to}, {notation}{part}");
        let mut head = vec![Span::raw(format!("{:names$}", ""))];
        for lane in shown {
            let is_chosen = lane == debugger.lane().index();
            let chosen = if is_chosen { Modifier::REVERSED } else { Modifier::empty() };
            let style = lane_style(debugger, lane).add_modifier(chosen);
            head.extend([Span::raw(" "), Span::styled(format!("{lane:>cell$}"), style), Span::raw(" ")]);
        }
        let table: Vec<Line<'_>> =
            std::iter::once(Line::from(head)).chain(lines.into_iter().skip(first).take(room)).collect();
        frame.render_widget(Paragraph::new(table).block(self.border(Pane::Values, &title)), area);
    }

    fn notation(&self, debugger: &Debugger) -> Notation {
        self.notation.unwrap_or(Notation::of(debugger.isa()))
    }

    /// Scrolls the table so that a lane is visible.
    fn show_lane(&mut self, lane: usize, columns: usize, lanes: usize) {
        let first = self.first_lane.clamp((lane + 1).saturating_sub(columns), lane);
        self.first_lane = first.min(lanes.saturating_sub(columns));
    }

    /// Returns the memory to show. This is the memory of the last `memory` command. If the user has not used the
    /// `memory` command, the function returns the first memory of the launch that is not empty.
    fn memory_place(&self, debugger: &Debugger) -> Option<String> {
        self.memory.clone().or_else(|| first_memory(debugger))
    }

    fn draw_memory(&mut self, frame: &mut Frame<'_>, debugger: &Debugger, area: Rect) {
        let Some(place) = self.memory_place(debugger) else { return };
        let words: Vec<&str> = place.split_whitespace().collect();
        let rows = command::memory(debugger, &words).unwrap_or_else(|why| why);
        let lines: Vec<Line<'_>> = rows.lines().map(|line| Line::raw(line.to_owned())).collect();
        let room = usize::from(area.height.saturating_sub(1));
        let first = self.first_line(Pane::Values, lines.len(), room);
        let rows = Paragraph::new(lines).scroll((first as u16, 0));
        frame.render_widget(rows.block(self.border(Pane::Values, &format!("memory {place}"))), area);
    }

    /// Draws the end of the answers. If the last answer has more lines than the pane, draws the start of this answer.
    fn draw_answers(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let lines = folded(self.answers.iter().map(String::as_str), area.width);
        let room = usize::from(area.height.saturating_sub(1));
        let before = self.answers.len().saturating_sub(self.last_answer);
        let start = folded(self.answers.iter().take(before).map(String::as_str), area.width).len() as isize;
        let last = lines.len().saturating_sub(room) as isize;
        let usual = start.min(last);
        let scrolled = self.scrolled.entry(Pane::Answers).or_default();
        let first = usual.saturating_add(*scrolled).clamp(0, last);
        *scrolled = first - usual;
        let more = lines.len() - (lines.len().min(first as usize + room));
        let title = if more == 0 { "answers".to_owned() } else { format!("answers, {more} lines below") };
        let shown: Vec<Line<'_>> = lines.into_iter().skip(first as usize).take(room).collect();
        frame.render_widget(Paragraph::new(shown).block(self.border(Pane::Answers, &title)), area);
    }

    fn draw_help(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let text = help();
        let lines: Vec<Line<'_>> = text.lines().map(|line| Line::raw(line.to_owned())).collect();
        let (all, room) = (lines.len(), usize::from(area.height.saturating_sub(1)));
        let first = self.help.unwrap_or(0).min(all.saturating_sub(room));
        self.help = Some(first);
        let title = format!(" help, lines {} to {} of {all} ", first + 1, all.min(first + room));
        let border = Block::new().borders(Borders::TOP).title(title);
        frame.render_widget(Clear, area);
        frame.render_widget(Paragraph::new(lines).scroll((first as u16, 0)).block(border), area);
    }

    fn draw_line(&self, frame: &mut Frame<'_>, area: Rect) {
        if self.prompt.is_open() {
            self.prompt.draw(frame, area);
            return;
        }
        let line = match self.help {
            Some(_) => "↑ ↓ PgUp PgDn scroll, any other key leaves the help",
            None => KEY_LINE,
        };
        frame.render_widget(Paragraph::new(line), area);
    }
}

/// Returns the registers of the group that are not 0, by name.
fn values(debugger: &Debugger) -> BTreeMap<String, Vec<u32>> {
    let rows = table::rows(debugger, debugger.group(), false);
    rows.into_iter().map(|row| (row.name, row.values)).collect()
}

/// Returns the help: keys, mouse and commands.
fn help() -> String {
    let each = KEYS.iter().map(|(key, line)| format!("{:<18}", format!("{key} {line}")));
    let keys: Vec<String> = each.collect();
    let rows = keys.chunks(4).map(|row| format!("  {}\n", row.concat().trim_end()));
    format!("{SCREEN_HELP}{}\n{MOUSE_HELP}{}", rows.collect::<String>(), command::help())
}

/// Selects the next or the previous lane.
fn choose_next(debugger: &mut Debugger, forward: bool) {
    let lane = debugger.lane().index();
    let next = if forward { lane + 1 } else { lane.saturating_sub(1) };
    debugger.choose_lane(Lane(next as u8));
}

/// Returns the width of the pane that shows the lanes. Each row of this pane contains the number of the first lane in
/// the row, and then up to 16 or 32 lanes.
fn lanes_width(width: u16) -> u16 {
    if width < 120 { (width / 2).clamp(20, 36) } else { 68 }
}

/// Returns the number of lanes in a row of the lanes pane.
fn lanes_of_a_row(width: u16) -> usize {
    (usize::from(width.saturating_sub(3)) / 16 * 8).clamp(8, 32)
}

/// Returns the style of a lane's values. Values of inactive lanes are dim.
fn lane_style(debugger: &Debugger, lane: usize) -> Style {
    let lane = Lane(lane as u8);
    let is_idle = debugger.issue().is_some_and(|issue| !issue.mask.has(lane));
    let style = if is_idle { Style::new().fg(Color::DarkGray) } else { Style::new() };
    if lane == debugger.lane() { style.add_modifier(Modifier::BOLD) } else { style }
}

/// Splits lines that are wider than `width`, and returns all lines. The function looks for a blank or a comma in the
/// second half of the first `width` characters, and splits the line after this character.
fn folded<'a>(lines: impl Iterator<Item = &'a str>, width: u16) -> Vec<Line<'static>> {
    let width = usize::from(width.max(1));
    let mut folded = Vec::new();
    for line in lines {
        let letters: Vec<char> = line.chars().collect();
        let mut rest = &letters[..];
        while rest.len() > width {
            let blank = rest[..width].iter().rposition(|letter| [' ', ','].contains(letter));
            let end = blank.map_or(width, |at| at + 1);
            let (part, more) = rest.split_at(if end > width / 2 { end } else { width });
            folded.push(Line::raw(part.iter().collect::<String>()));
            rest = more;
        }
        folded.push(Line::raw(rest.iter().collect::<String>()));
    }
    folded
}

/// Returns a line of the program or source. The next instruction is shown in reversed colours, a stop is red, and a
/// comment is dim.
fn program_line(line: &ProgramLine, is_next: bool) -> Line<'static> {
    let mark = |is: bool, mark: &'static str| if is { mark } else { " " };
    let text = crate::shown::name(&line.text).into_owned();
    let (code, comment) = match text.find(';') {
        Some(at) => text.split_at(at),
        None => (text.as_str(), ""),
    };
    let parts = vec![
        Span::raw(mark(is_next, ">")),
        Span::styled(mark(line.has_stop, "*"), Style::new().fg(Color::LightRed)),
        Span::raw(code.to_owned()),
        Span::styled(comment.to_owned(), Style::new().fg(Color::DarkGray)),
    ];
    let style = if is_next { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    Line::from(parts).style(style)
}

/// Draws the first line: the position in the program, the step, the group, and the lanes of the group.
fn draw_head(frame: &mut Frame<'_>, debugger: &Debugger, area: Rect) {
    let group = debugger.group();
    let place = debugger
        .place()
        .map(|address| debugger.source_place(address).unwrap_or_else(|| debugger.spelled(address)));
    let place = crate::shown::name(&place.unwrap_or_default()).into_owned();
    let state = match (debugger.stepping().state(group), debugger.issue()) {
        (GroupState::Waiting, _) => "waits".to_owned(),
        (GroupState::Running, Some(issue)) => {
            let (active, all) = (issue.mask.count(), debugger.stepping().lanes(group).len());
            format!("{} for {active} of {all} lanes", debugger.spelled(issue.pc))
        }
        (GroupState::Running | GroupState::Ended, _) => "ended".to_owned(),
    };
    let trap = if debugger.trap().is_some() { "  trap" } else { "" };
    let (groups, step) = (debugger.stepping().groups(), debugger.position());
    let text = format!(" {place}  step {step}  group {group} of {groups}  {state}{trap}");
    frame.render_widget(Paragraph::new(text).style(Style::new().add_modifier(Modifier::REVERSED)), area);
}

/// Returns the first memory of the launch that is not empty.
fn first_memory(debugger: &Debugger) -> Option<String> {
    let (stepping, group, lane) = (debugger.stepping(), debugger.group(), debugger.lane());
    stepping.spaces().iter().find_map(|space| {
        let buffers = stepping.buffers(space.name, group, lane);
        let at = buffers.first().map_or(0, |(_, place)| place.start as u32);
        let there = !stepping.memory(space.name, group, lane, at, 1).is_empty();
        there.then(|| format!("{} {at:#x}", space.name))
    })
}

/// Returns a letter and a colour for the state of a lane. The report page uses the same letters as the debugger.
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
    use std::path::Path;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use reconverge_simt::Options;
    use reconverge_workbench::kernels::{KERNELS, Kernel};
    use reconverge_workbench::source::UserSource;

    use super::*;

    fn debugger(kernel: &Kernel, lanes: u32) -> Debugger {
        let opened = kernel.open().unwrap();
        let session = kernel.prepare(lanes).unwrap();
        let program = &opened.image.programs[0];
        let debugger = Debugger::new(&session, &opened.target, program, &Options::default()).unwrap();
        let source = UserSource::new(kernel.isa, Path::new("kernel.s"), kernel.source, &opened.lines[0]);
        debugger.with_source(Some(source))
    }

    fn drawn_in(screen: &mut Screen, debugger: &Debugger, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame, debugger)).unwrap();
        terminal.backend().to_string()
    }

    fn drawn(screen: &mut Screen, debugger: &Debugger) -> String {
        drawn_in(screen, debugger, 80, 24)
    }

    fn press(screen: &mut Screen, debugger: &mut Debugger, keys: &str) -> Asked {
        let mut asked = Asked::Nothing;
        for key in keys.chars() {
            let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
            asked = screen.key(debugger, KeyEvent::new(code, KeyModifiers::NONE));
        }
        asked
    }

    fn at(screen: &mut Screen, debugger: &mut Debugger, kind: MouseEventKind, column: u16, row: u16) {
        screen.mouse(debugger, MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
    }

    const CLICK: MouseEventKind = MouseEventKind::Down(MouseButton::Left);

    #[test]
    fn the_screen_shows_program_lanes_and_answers_of_every_machine() {
        for kernel in &KERNELS {
            let mut debugger = debugger(kernel, 1 << 14);
            let mut screen = Screen::default();
            press(&mut screen, &mut debugger, "dc");
            let text = drawn(&mut screen, &debugger);
            assert!(text.contains("lanes diverge"), "{text}");
            assert!(text.contains("lanes of group"), "{text}");
            assert!(text.contains("registers of lanes 0 to "), "{text}");
            assert!(text.contains("kernel.s"), "{text}");
            let wide = drawn_in(&mut screen, &debugger, 140, 50);
            assert_eq!(wide.contains("memory g "), kernel.isa.name() == "tesla", "{wide}");
            press(&mut screen, &mut debugger, ":why 1\n");
            assert!(drawn(&mut screen, &debugger).contains("lane 1:"));
            assert_eq!(press(&mut screen, &mut debugger, "q"), Asked::Quit);
        }
    }

    /// Regression test. An earlier version truncated the line of keys, lanes 12 to 15, and lanes 28 to 31.
    #[test]
    fn every_lane_and_the_keys_fit_80_columns() {
        assert!(KEY_LINE.chars().count() <= 80, "{}", KEY_LINE.len());
        for line in help().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for kernel in &KERNELS {
            let mut debugger = debugger(kernel, 1 << 14);
            let mut screen = Screen::default();
            drawn(&mut screen, &debugger);
            let inside =
                |(cell, _): &&(Rect, Lane)| cell.width == 2 && cell.right() <= 80 && cell.bottom() <= 24;
            let cells: Vec<(Rect, Lane)> = screen.places.lanes.iter().filter(inside).copied().collect();
            assert_eq!(cells.len(), debugger.width(), "{}", kernel.isa);
            // A click on the last cell selects the lane of this cell. The table then shows this lane.
            let (cell, last) = cells[cells.len() - 1];
            at(&mut screen, &mut debugger, CLICK, cell.x + 1, cell.y);
            assert_eq!(debugger.lane(), last);
            let text = drawn(&mut screen, &debugger);
            assert!(text.contains(&format!(" to {}, ", last.0)), "{text}");
        }
    }

    #[test]
    fn long_lines_are_folded_between_numbers_and_words() {
        let texts =
            |line: &str| folded([line].into_iter(), 12).iter().map(Line::to_string).collect::<Vec<_>>();
        assert_eq!(texts("lanes 1,3,15,17,19"), ["lanes 1,3,", "15,17,19"]);
        assert_eq!(texts("aaaaaaaaaaaaaaaa"), ["aaaaaaaaaaaa", "aaaa"]);
        assert_eq!(texts("a bbbbbbbbbbbbbbb"), ["a bbbbbbbbbb", "bbbbb"]);
        assert_eq!(texts(""), [""]);
    }

    #[test]
    fn the_help_scrolls_to_its_end() {
        let mut debugger = debugger(&KERNELS[0], 256);
        let mut screen = Screen::default();
        press(&mut screen, &mut debugger, "?");
        assert!(drawn(&mut screen, &debugger).contains("Keys of the screen"));
        for _ in 0..20 {
            screen.key(&mut debugger, KeyEvent::new(KeyCode::PageDown, KeyModifiers::NONE));
            drawn(&mut screen, &debugger);
        }
        let end = help().trim_end().lines().last().unwrap().to_owned();
        assert!(drawn(&mut screen, &debugger).contains(&end));
        at(&mut screen, &mut debugger, MouseEventKind::ScrollUp, 5, 5);
        assert!(!drawn(&mut screen, &debugger).contains(&end));
        press(&mut screen, &mut debugger, "q");
        assert!(drawn(&mut screen, &debugger).contains("answers"));
    }

    #[test]
    fn a_click_on_a_line_sets_a_stop_and_another_removes_it() {
        let kernel = KERNELS.iter().find(|kernel| kernel.isa.name() == "tesla").unwrap();
        let mut debugger = debugger(kernel, 256);
        let mut screen = Screen::default();
        for keys in ["", "v"] {
            press(&mut screen, &mut debugger, keys);
            drawn(&mut screen, &debugger);
            let (row, address) = screen.places.lines[1];
            at(&mut screen, &mut debugger, CLICK, 10, row);
            assert!(debugger.stops.iter().any(|stop| stop.on == On::Address(address)));
            assert!(drawn(&mut screen, &debugger).lines().nth(row.into()).unwrap().contains('*'));
            at(&mut screen, &mut debugger, CLICK, 10, row);
            assert_eq!(debugger.stops.iter().count(), 0);
        }
        let first = screen.places.lines[0];
        at(&mut screen, &mut debugger, MouseEventKind::ScrollDown, 10, 3);
        drawn(&mut screen, &debugger);
        assert_ne!(screen.places.lines[0], first);
    }

    #[test]
    fn values_that_a_step_changed_are_marked_and_flags_are_no_floats() {
        let kernel = KERNELS.iter().find(|kernel| kernel.isa.name() == "tesla" && kernel.name == "collatz");
        let mut debugger = debugger(kernel.unwrap(), 256);
        let mut screen = Screen::default();
        let mut marked = 0;
        for _ in 0..30 {
            press(&mut screen, &mut debugger, "s");
            let text = drawn(&mut screen, &debugger);
            marked += text.matches('*').count();
            let flags = text.lines().find(|line| line.contains("$c0 "));
            assert!(flags.is_none_or(|line| !line.contains("e-")), "{text}");
        }
        assert!(marked > 30, "{marked}");
    }

    #[test]
    fn ctrl_c_drops_the_command_line_and_does_not_quit() {
        let mut debugger = debugger(&KERNELS[0], 256);
        let mut screen = Screen::default();
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        press(&mut screen, &mut debugger, ":step 9");
        assert_eq!(screen.key(&mut debugger, interrupt), Asked::Nothing);
        let text = drawn(&mut screen, &debugger);
        assert!(!text.contains("step 9") && !text.contains("q quits"), "{text}");
        assert_eq!(screen.key(&mut debugger, interrupt), Asked::Nothing);
        assert!(drawn(&mut screen, &debugger).contains("q quits"));
    }

    #[test]
    fn a_wrong_command_is_answered_and_kept_in_the_history() {
        let mut debugger = debugger(&KERNELS[0], 256);
        let mut screen = Screen::default();
        press(&mut screen, &mut debugger, ":stpe\n:");
        screen.key(&mut debugger, KeyEvent::new(KeyCode::Up, KeyModifiers::NONE));
        let text = drawn(&mut screen, &debugger);
        assert!(text.contains("did you mean `step`"), "{text}");
        assert!(text.contains(": stpe"), "{text}");
    }
}
