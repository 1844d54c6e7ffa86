mod bounds;
mod damage;
mod document;
mod look_up;
mod opening;
mod places;
mod support;
mod writers;
