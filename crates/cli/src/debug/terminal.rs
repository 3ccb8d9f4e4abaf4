//! The debugger on a terminal: a screen, or a command line with history and completion.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, KeyCode, KeyModifiers};
use crossterm::execute;
use reconverge_workbench::debugger::{Debugger, command};
use reedline::{
    ColumnarMenu, DefaultCompleter, DefaultPrompt, DefaultPromptSegment, Emacs, MenuBuilder, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, default_emacs_keybindings,
};

use super::ahead::TypedAhead;
use super::screen::{Asked, Screen};
use super::{PROMPT, carry_out, on_ctrl_c};
use crate::args::Answer;

/// Runs a command line with history and completion.
pub(super) fn plain(debugger: &mut Debugger) -> Result<Answer> {
    let mut completer = DefaultCompleter::with_inclusions(&['-']).set_min_word_len(1);
    completer.insert(command::names().map(str::to_owned).collect());
    completer
        .insert(debugger.source().iter().flat_map(|source| source.labels()).map(str::to_owned).collect());
    let mut keys = default_emacs_keybindings();
    let complete =
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    let menu = ColumnarMenu::default().with_name(MENU);
    let mut line = Reedline::create()
        .with_completer(Box::new(completer))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_edit_mode(Box::new(Emacs::new(keys)));
    let prompt = DefaultPrompt::new(
        DefaultPromptSegment::Basic(PROMPT.trim_end().to_owned()),
        DefaultPromptSegment::Empty,
    );
    debugger.interrupt = Some(on_ctrl_c());
    loop {
        let typed = match line.read_line(&prompt)? {
            Signal::Success(typed) => typed,
            // Ctrl-C drops the line or ends a movement. Ctrl-D ends the debugger.
            Signal::CtrlC => continue,
            _ => return Ok(Answer::Yes),
        };
        if carry_out(debugger, &typed) {
            return Ok(Answer::Yes);
        }
    }
}

/// The name of the completion menu.
const MENU: &str = "completions";

/// Runs the screen.
pub(super) fn screen(debugger: &mut Debugger) -> Result<Answer> {
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let _mouse = Mouse::captured();
    let mut screen = Screen::default();
    // Ctrl-C or Escape ends a movement. Other keys are handled after the end of the movement.
    let ahead = Arc::new(Mutex::new(TypedAhead::default()));
    let waiting = ahead.clone();
    debugger.interrupt = Some(Box::new(move || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ends = false;
        while event::poll(Duration::ZERO).unwrap_or(false) {
            ends |= event::read().is_ok_and(|event| waiting.ends_movement(event));
        }
        ends
    }));
    let ended = loop {
        if let Err(error) = terminal.draw(|frame| screen.draw(frame, debugger)) {
            break Err(error);
        }
        let waited = ahead.lock().unwrap_or_else(PoisonError::into_inner).next();
        match waited.map_or_else(event::read, Ok) {
            Ok(event::Event::Key(key)) if key.is_press() => {
                if screen.key(debugger, key) == Asked::Quit {
                    break Ok(Answer::Yes);
                }
            }
            Ok(event::Event::Mouse(mouse)) => screen.mouse(debugger, mouse),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    ratatui::restore();
    ended.context("the terminal")
}

/// The mouse reports of the terminal. As long as this value exists, the reports are enabled.
struct Mouse;

impl Mouse {
    fn captured() -> Mouse {
        // Errors are ignored, because the screen can be used without a mouse.
        let _ = execute!(std::io::stdout(), EnableMouseCapture);
        Mouse
    }
}

impl Drop for Mouse {
    fn drop(&mut self) {
        let _ = execute!(std::io::stdout(), DisableMouseCapture);
    }
}
