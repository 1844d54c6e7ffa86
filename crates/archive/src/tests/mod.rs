mod damage;
mod document;
mod look_up;
mod support;
