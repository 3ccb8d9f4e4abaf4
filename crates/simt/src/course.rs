//! The course of a launch: the instructions that the groups of the launch issue, step by step. A [`Follower`] compares
//! another run of the same launch with the course, and finds the first step at which they differ.

use crate::mask::Mask;
use crate::observe::{Event, Observer};

/// The issue of one instruction to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Address of the instruction, in the unit of the machine.
    pub pc: u32,
    /// Number of the group in the launch.
    pub group: u32,
    /// The active lanes.
    pub mask: Mask,
}

/// The issues of a launch, in order. A `Course` is also an observer, which records the issues of a run.
#[derive(Clone, Debug, Default)]
pub struct Course {
    stages: Vec<Stage>,
    group: u32,
}

impl Course {
    /// Returns the issues. The issue of step N has index N.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Returns the largest number of instructions that a set of groups issued. Each set consists of `together` groups
    /// with consecutive numbers. The lowest number in a set is a multiple of `together`. Pass 1 to count single groups.
    /// Pass the number of warps in a block to count blocks.
    pub fn longest(&self, together: usize) -> u64 {
        let of = |stage: &Stage| stage.group as usize / together.max(1);
        let mut counts = vec![0; self.stages.iter().map(|stage| of(stage) + 1).max().unwrap_or(0)];
        self.stages.iter().for_each(|stage| counts[of(stage)] += 1);
        counts.into_iter().max().unwrap_or(0)
    }
}

impl Observer for Course {
    const ENABLED: bool = true;
    const DATA: bool = false;

    #[inline]
    fn event(&mut self, event: Event) {
        if let Event::Issue { pc, mask } = event {
            self.stages.push(Stage { pc, group: self.group, mask });
        }
    }

    fn group(&mut self, number: usize) {
        self.group = number as u32;
    }
}

/// An observer that compares a run with a course. The comparison ends at the first step at which the run and the course
/// differ.
#[derive(Clone, Debug)]
pub struct Follower<'a> {
    course: &'a Course,
    group: u32,
    next: usize,
    left: Option<usize>,
}

impl<'a> Follower<'a> {
    /// Returns a follower for a run that starts at `step` of the course.
    pub fn new(course: &'a Course, step: usize) -> Follower<'a> {
        Follower { course, group: 0, next: step, left: None }
    }

    /// Returns the first step at which the run and the course differ. At this step, the two issue different
    /// instructions, or only one of the two has ended. Returns `None` if no difference has been found.
    pub fn left(&self) -> Option<usize> {
        self.left
    }

    /// Records that the run has ended.
    pub fn end(&mut self) {
        if self.left.is_none() && self.next < self.course.stages.len() {
            self.left = Some(self.next);
        }
    }

    /// Records that a group has ended. The caller must run each group to its end before it starts another group.
    pub fn end_group(&mut self, group: usize) {
        if self.left.is_none()
            && self.course.stages.get(self.next).is_some_and(|it| it.group as usize == group)
        {
            self.left = Some(self.next);
        }
    }

    /// Records that the run has trapped at an address. The trapping instruction may or may not have been issued.
    pub fn trap(&mut self, pc: u32) {
        let at = |step: usize| self.course.stages.get(step).is_some_and(|stage| stage.pc == pc);
        if self.left.is_none() && !at(self.next) && !at(self.next.wrapping_sub(1)) {
            self.left = Some(self.next);
        }
    }
}

impl Observer for Follower<'_> {
    const ENABLED: bool = true;
    const DATA: bool = false;

    #[inline]
    fn event(&mut self, event: Event) {
        if let Event::Issue { pc, mask } = event
            && self.left.is_none()
        {
            let here = Stage { pc, group: self.group, mask };
            if self.course.stages.get(self.next) == Some(&here) {
                self.next += 1;
            } else {
                self.left = Some(self.next);
            }
        }
    }

    fn group(&mut self, number: usize) {
        self.group = number as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(pcs: &[u32]) -> Course {
        let mut course = Course::default();
        course.group(1);
        course.issues(pcs, Mask(3));
        course
    }

    #[test]
    fn a_run_leaves_a_course_where_it_issues_something_else() {
        let course = course(&[0, 8, 16]);
        let left = |group: usize, pcs: &[u32], mask: u64| {
            let mut follower = Follower::new(&course, 1);
            follower.group(group);
            follower.issues(pcs, Mask(mask));
            follower.end();
            follower.left()
        };
        assert_eq!(left(1, &[8, 16], 3), None);
        assert_eq!(left(1, &[8, 20], 3), Some(2));
        assert_eq!(left(1, &[8, 16], 1), Some(1));
        assert_eq!(left(0, &[8, 16], 3), Some(1));
        // The first run continues after the end of the course. The second run ends before the end of the course.
        assert_eq!(left(1, &[8, 16, 24], 3), Some(3));
        assert_eq!(left(1, &[8], 3), Some(2));
    }

    #[test]
    fn the_longest_group_counts() {
        let mut course = course(&[0, 8, 16]);
        course.group(0);
        course.issues(&[0], Mask(1));
        assert_eq!((course.longest(1), course.longest(2)), (3, 4));
    }
}
