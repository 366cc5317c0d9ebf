# alpha and beta where the own part of a stretch of a sequence begins and ends: see stretches.py.


cdef take_edges(Workspace ws, edges):
    """Let `note_edges` write to the arrays of edges (Optional[Edges]); None for nowhere."""
    ws.has_edges = edges is not None
    if ws.has_edges:
        ws.edges, ws.edge_scales = edges.values, edges.scales


cdef void note_edges(
    Automaton fsa, Batch batch, Workspace ws, int lane, Py_ssize_t low, Py_ssize_t high, bint both
) noexcept nogil:
    """Write alpha of one lane at the n boundaries up to the first and up to the last one of its own part and,
    if `both`, beta of live states at the n boundaries from these on; only those within low..high.
    """
    cdef Py_ssize_t s = ws.sequence[lane], kind, i, v, p, n = ws.edges.shape[2]
    cdef bint behind
    for kind in range(4 if both else 2):
        behind = kind >= 2
        for i in range(n):
            v = batch.own[s, kind & 1] - ws.low + (i if behind else i + 1 - n)
            if not low <= v <= high:
                continue
            for p in range(fsa.states):
                ws.edges[s, kind, i, p] = ws.alpha[v, p, lane]
                if behind and ws.alpha[v, p, lane] != 0.0:
                    ws.edges[s, kind, i, p] = ws.beta[v % ws.beta_rows, p, lane]
            ws.edge_scales[s, kind, i] = ws.beta_scale[v, lane] if behind else ws.alpha_scale[v, lane]
