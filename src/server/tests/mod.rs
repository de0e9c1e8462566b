mod deadlines;
mod drain;
mod protocol;
mod refusals;
mod support;
