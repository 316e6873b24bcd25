"""Share one step of training among many ranks, and find when messages cost more than the work they save."""
