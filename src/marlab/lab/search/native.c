/* The trees of trees.py in C, one root after the other: the same rules, for a CPU.
 *
 * Compiled by native.py with REAL, an INTEGER of its width, and ACTIONS. All memory belongs to tensors that Python
 * keeps.
 */

#include <math.h>
#include <stdint.h>
#include <tgmath.h>

enum { SIBLINGS, TREE, RANGE, NONE };

/* Actions are padded with illegal ones to a power of two, so that the compiler can treat them side by side and
 * halves can be compared. */
enum { LANES = ACTIONS <= 8 ? 8 : ACTIONS <= 16 ? 16 : 32 };
_Static_assert(LANES <= 32, "a choice is found in the bits of 32 actions");

/* A node's numbers lie together, in REALs and integers of the same width, so that a visit touches few cache lines. */
enum {
    VISITS = LANES,
    RETURNS = 2 * LANES,
    OWN = RETURNS + ACTIONS, /* the value it was made with; in the padding of the returns, if there is any */
    TOTAL = 3 * LANES + 1,   /* own value and all returns */
    COUNT,                   /* how many that are */
    REWARD,                  /* on entering */
    DISCOUNT,
    CHOICE, /* integers from here on */
    NEXT,   /* node that the choice leads to, or ... */
    DEPTH,
    OUTCOME,
    CHILDREN /* [K, A] node, or -1 */
};
enum { MISSING = -1, CLOSED = -2 }; /* ... to be made, or: nothing follows here */

static const REAL SMALLEST_RANGE = (REAL)1e-8, LOWEST_SCORE = (REAL)-1e9;

typedef struct {
    int64_t batch, nodes, width, outcomes, depth_limit;
    int64_t gumbel, normalise, lowest, legacy_q, legacy_terminal_reward;
    double range_low, range_high, visit_offset, value_scale, tiny;
    REAL *table;         /* [B, N, width] */
    REAL *low, *high;    /* [B] range of each tree */
    REAL *weights;       /* [S + 1] weight of the prior by visits (PUCT) */
    REAL *noise;         /* [B, A] (Gumbel) */
    int64_t *considered; /* [S, B] visits of the considered actions (Gumbel) */
    int64_t *slots;      /* [S + 1] which outcome a further visit follows */
    INTEGER *path;       /* [B, depth_limit + 1] */
    INTEGER *length;     /* [B] steps of the walk */
    int64_t *parent;     /* [B] node * B + root where each walk ended */
    int64_t *action;     /* [B] chosen there */
    int64_t *ends;       /* [S, B] node where each simulation ended */
} Trees;

static inline REAL *node_of(const Trees *t, int64_t root, int64_t node) {
    return t->table + (root * t->nodes + node) * t->width;
}

static inline INTEGER *integers(REAL *row) { return (INTEGER *)row; }

static inline REAL mean_value(const REAL *row) { return row[TOTAL] / row[COUNT]; }

/* In pairs, because a compiler may not change the order by itself. */
static inline REAL least(const REAL *values) {
    REAL left[LANES];
    for (int a = 0; a < LANES; a++) left[a] = values[a];
    for (int half = LANES / 2; half; half /= 2)
        for (int a = 0; a < half; a++) left[a] = left[a + half] < left[a] ? left[a + half] : left[a];
    return left[0];
}

static inline REAL greatest(const REAL *values) {
    REAL left[LANES];
    for (int a = 0; a < LANES; a++) left[a] = values[a];
    for (int half = LANES / 2; half; half /= 2)
        for (int a = 0; a < half; a++) left[a] = left[a + half] > left[a] ? left[a + half] : left[a];
    return left[0];
}

/* One bit per action, so that nothing waits for a comparison before it and no branch is guessed wrong. */
static inline int first_best(const REAL *scores) {
    const REAL best = greatest(scores);
    uint32_t equal = 0;
    for (int a = 0; a < LANES; a++) equal |= scores[a] == best ? (uint32_t)1 << a : 0;
    return equal ? __builtin_ctz(equal) : 0;
}

/* The functions that choose are kept apart: inlined into a loop, GCC takes their lanes one by one instead of together. */

/* --- PUCT ------------------------------------------------------------------------------------------------------ */

/* Mean returns, the node's value for actions never tried, and the range of all of them. */
static inline void action_values(const Trees *t, const REAL *row, REAL *q, REAL *low, REAL *high) {
    const REAL *tried = row + VISITS, *sum = row + RETURNS, value = mean_value(row);
    if (t->legacy_q)
        for (int a = 0; a < LANES; a++) q[a] = a < ACTIONS ? sum[a] / (tried[a] + 1) : value;
    else
        for (int a = 0; a < LANES; a++) {
            const REAL mean = sum[a] / (tried[a] > 0 ? tried[a] : 1);
            q[a] = tried[a] > 0 ? mean : value;
        }
    *low = least(q), *high = greatest(q);
    *low = value < *low ? value : *low, *high = value > *high ? value : *high;
}

/* Take the values of a node into the range of its tree. */
static void widen(const Trees *t, int64_t root, const REAL *row) {
    REAL q[LANES], low, high;
    action_values(t, row, q, &low, &high);
    if (low < t->low[root]) t->low[root] = low;
    if (high > t->high[root]) t->high[root] = high;
}

__attribute__((noinline)) static int puct_choice(const Trees *t, int64_t root, const REAL *row) {
    const REAL *prior = row, *tried = row + VISITS;
    REAL q[LANES], low, high, base = 0, scale = 1;
    action_values(t, row, q, &low, &high);
    if (t->normalise == TREE) low = t->low[root], high = t->high[root];
    if (t->normalise == SIBLINGS || t->normalise == TREE) {
        base = low, scale = 1 / (high - low < SMALLEST_RANGE ? SMALLEST_RANGE : high - low);
    } else if (t->normalise == RANGE) {
        base = (REAL)t->range_low, scale = (REAL)(1 / (t->range_high - t->range_low));
    }
    const REAL weight = t->weights[(int64_t)row[COUNT] - 1];
    for (int a = 0; a < LANES; a++) q[a] = (q[a] - base) * scale;
    if (t->lowest && !t->legacy_q)
        for (int a = 0; a < LANES; a++) q[a] = tried[a] > 0 ? q[a] : 0;
    for (int a = 0; a < LANES; a++) q[a] += prior[a] * weight / (tried[a] + 1);
    return first_best(q);
}

/* --- Gumbel ---------------------------------------------------------------------------------------------------- */

static void completed_q(const Trees *t, const REAL *row, REAL *q) {
    const REAL *prior = row, *tried = row + VISITS, *sum = row + RETURNS;
    const REAL tiny = (REAL)t->tiny, count = row[COUNT] - 1;
    REAL most = 0, mass = 0, weighted = 0;
    for (int a = 0; a < ACTIONS; a++) {
        if (tried[a] > most) most = tried[a];
        q[a] = 0;
        if (tried[a] > 0) {
            REAL p = exp(prior[a]);
            if (p < tiny) p = tiny;
            q[a] = sum[a] / tried[a];
            mass += p, weighted += p * q[a];
        }
    }
    const REAL mixed = (row[OWN] + count * (weighted / (mass < tiny ? tiny : mass))) / (count + 1);
    REAL low = INFINITY, high = -INFINITY;
    for (int a = 0; a < ACTIONS; a++) {
        if (tried[a] == 0) q[a] = mixed;
        low = q[a] < low ? q[a] : low, high = q[a] > high ? q[a] : high;
    }
    const REAL range = high - low < SMALLEST_RANGE ? SMALLEST_RANGE : high - low;
    const REAL scale = (most + (REAL)t->visit_offset) * (REAL)t->value_scale / range;
    for (int a = 0; a < ACTIONS; a++) q[a] = (q[a] - low) * scale;
    for (int a = ACTIONS; a < LANES; a++) q[a] = -INFINITY;
}

__attribute__((noinline)) static int gumbel_choice(const Trees *t, const REAL *row) {
    REAL q[LANES], best = -INFINITY, mass = 0;
    completed_q(t, row, q);
    for (int a = 0; a < ACTIONS; a++) {
        q[a] += row[a];
        if (q[a] > best) best = q[a];
    }
    if (best == -INFINITY) return 0; /* nothing is legal */
    for (int a = 0; a < ACTIONS; a++) mass += q[a] = exp(q[a] - best);
    for (int a = 0; a < ACTIONS; a++) q[a] = q[a] / mass - row[VISITS + a] / row[COUNT];
    return first_best(q);
}

static int gumbel_root_choice(const Trees *t, int64_t root, int64_t simulation, const REAL *row) {
    REAL q[LANES], best = -INFINITY;
    completed_q(t, row, q);
    for (int a = 0; a < ACTIONS; a++) if (row[a] > best) best = row[a];
    const REAL wanted = (REAL)t->considered[simulation * t->batch + root];
    for (int a = 0; a < ACTIONS; a++) {
        REAL score = t->noise[root * ACTIONS + a] + (row[a] - best) + q[a];
        if (score < LOWEST_SCORE) score = LOWEST_SCORE;
        q[a] = row[VISITS + a] != wanted || row[a] == -INFINITY ? -INFINITY : score;
    }
    return first_best(q);
}

/* --- one simulation -------------------------------------------------------------------------------------------- */

/* Where a choice leads, by the outcome whose turn it is. */
static inline INTEGER *link_of(const Trees *t, REAL *row, int64_t action) {
    INTEGER *first = integers(row) + CHILDREN + action;
    return t->outcomes == 1 ? first : first + t->slots[(int64_t)row[VISITS + action]] * ACTIONS;
}

static void renew(const Trees *t, int64_t root, int64_t node, int64_t simulation) {
    REAL *row = node_of(t, root, node);
    INTEGER *at = integers(row), choice = at[CHOICE];
    if (at[NEXT] == CLOSED) return;
    if (!t->gumbel) choice = puct_choice(t, root, row);
    else if (node) choice = gumbel_choice(t, row);
    else if (simulation < t->nodes - 1) choice = gumbel_root_choice(t, root, simulation, row);
    at[CHOICE] = choice;
    at[NEXT] = *link_of(t, row, choice);
}

static void place(const Trees *t, int64_t root, int64_t node, const REAL *logits, const uint8_t *legal, REAL value) {
    REAL *row = node_of(t, root, node), best = -INFINITY, mass = 0;
    for (int a = 0; a < ACTIONS; a++) if (legal[a] && logits[a] > best) best = logits[a];
    for (int a = 0; a < ACTIONS; a++) {
        row[a] = legal[a] ? exp(logits[a] - best) : 0;
        mass += row[a];
    }
    const REAL log_mass = t->gumbel ? log(mass) : 0;
    for (int a = 0; a < ACTIONS; a++) {
        if (!legal[a]) row[a] = -INFINITY;
        else row[a] = t->gumbel ? logits[a] - best - log_mass : row[a] / mass;
    }
    for (int a = ACTIONS; a < LANES; a++) row[a] = -INFINITY;
    row[OWN] = row[TOTAL] = value;
    row[COUNT] = 1;
}

static int any(const uint8_t *legal) {
    for (int a = 0; a < ACTIONS; a++) if (legal[a]) return 1;
    return 0;
}

void start(const Trees *t, const REAL *logits, const REAL *value, const uint8_t *legal) {
    for (int64_t root = 0; root < t->batch; root++) {
        place(t, root, 0, logits + root * ACTIONS, legal + root * ACTIONS, value[root]);
        integers(node_of(t, root, 0))[NEXT] = any(legal + root * ACTIONS) ? MISSING : CLOSED;
    }
}

void choose_first(const Trees *t) {
    for (int64_t root = 0; root < t->batch; root++) renew(t, root, 0, 0);
}

void walk(const Trees *t) {
    for (int64_t root = 0; root < t->batch; root++) {
        INTEGER *path = t->path + root * (t->depth_limit + 1), steps = 0;
        INTEGER *at = integers(node_of(t, root, 0));
        path[0] = 0;
        while (at[NEXT] >= 0) {
            path[++steps] = at[NEXT];
            at = integers(node_of(t, root, at[NEXT]));
        }
        t->length[root] = steps;
        t->parent[root] = path[steps] * t->batch + root;
        t->action[root] = at[CHOICE];
    }
}

/* The child that an equal outcome of this action has, or MISSING. */
static INTEGER twin(const Trees *t, int64_t root, REAL *row, int64_t action, int64_t outcome) {
    const INTEGER *first = integers(row) + CHILDREN + action;
    for (int64_t k = 0; k < t->outcomes; k++) {
        const INTEGER child = first[k * ACTIONS];
        if (child >= 0 && integers(node_of(t, root, child))[OUTCOME] == outcome) return child;
    }
    return MISSING;
}

/* Fill node number `node` below `parent`; returns the node a path goes to, which an equal outcome may already have. */
static INTEGER extend(const Trees *t, int64_t root, REAL *parent, int64_t node, REAL reward, REAL discount,
                      const int64_t *outcome, const uint8_t *legal) {
    REAL *row = node_of(t, root, node);
    INTEGER *at = integers(row), *link = link_of(t, parent, integers(parent)[CHOICE]), end = node;
    row[REWARD] = t->legacy_terminal_reward && discount != 0 ? 0 : reward;
    row[DISCOUNT] = discount;
    at[DEPTH] = integers(parent)[DEPTH] + 1;
    at[NEXT] = discount != 0 && at[DEPTH] < t->depth_limit && any(legal) ? MISSING : CLOSED;
    if (outcome) {
        const INTEGER known = twin(t, root, parent, integers(parent)[CHOICE], outcome[root]);
        at[OUTCOME] = (INTEGER)outcome[root];
        if (known >= 0) end = known;
    }
    return *link = end;
}

static void back_up(const Trees *t, int64_t root, const INTEGER *path, int64_t length) {
    const REAL *child = node_of(t, root, path[length]);
    REAL gained = mean_value(child);
    for (int64_t level = length - 1; level >= 0; level--) {
        REAL *row = node_of(t, root, path[level]);
        const INTEGER action = integers(row)[CHOICE];
        gained = child[REWARD] + child[DISCOUNT] * gained;
        row[VISITS + action] += 1;
        row[RETURNS + action] += gained;
        row[COUNT] += 1;
        row[TOTAL] += gained;
        child = row;
    }
}

/* The trees of many roots do not fit into a cache: ask for the path of a root some roots ahead. */
static inline void fetch(const Trees *t, int64_t root) {
    if (root >= t->batch) return;
    const INTEGER *path = t->path + root * (t->depth_limit + 1);
    for (int64_t level = 0; level <= t->length[root]; level++) {
        const char *row = (const char *)node_of(t, root, path[level]);
        for (unsigned byte = 0; byte < CHILDREN * sizeof(REAL); byte += 64) __builtin_prefetch(row + byte, 1);
    }
}

void grow(const Trees *t, int64_t node, const REAL *logits, const REAL *value, const REAL *reward,
          const REAL *discount, const uint8_t *legal, const int64_t *outcome) {
    for (int64_t root = 0; root < t->batch; root++) {
        fetch(t, root + 3);
        INTEGER *path = t->path + root * (t->depth_limit + 1);
        int64_t length = t->length[root], end = path[length];
        REAL *parent = node_of(t, root, end);
        if (integers(parent)[NEXT] != CLOSED) {
            place(t, root, node, logits + root * ACTIONS, legal + root * ACTIONS, value[root]);
            end = extend(t, root, parent, node, reward[root], discount[root], outcome, legal + root * ACTIONS);
            path[++length] = end;
        }
        t->ends[(node - 1) * t->batch + root] = end;
        back_up(t, root, path, length);
        if (t->normalise == TREE && !t->gumbel)
            for (int64_t level = 0; level <= length; level++) widen(t, root, node_of(t, root, path[level]));
        for (int64_t level = 0; level <= length; level++) renew(t, root, path[level], node);
    }
}

/* Lowest and highest mean return of any action tried in each tree, infinite where none was. */
void extremes(const Trees *t, REAL *low, REAL *high) {
    for (int64_t root = 0; root < t->batch; root++) {
        REAL lowest[LANES], highest[LANES];
        for (int a = 0; a < LANES; a++) lowest[a] = INFINITY, highest[a] = -INFINITY;
        for (int64_t node = 0; node < t->nodes; node++) {
            const REAL *tried = node_of(t, root, node) + VISITS, *sum = tried + RETURNS - VISITS;
            for (int a = 0; a < LANES; a++) {
                const REAL q = sum[a] / (tried[a] > 0 ? tried[a] : 1);
                lowest[a] = tried[a] > 0 && q < lowest[a] ? q : lowest[a];
                highest[a] = tried[a] > 0 && q > highest[a] ? q : highest[a];
            }
        }
        low[root] = least(lowest), high[root] = greatest(highest);
    }
}
