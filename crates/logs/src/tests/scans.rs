//! The scan: any split, any packing, any size.
