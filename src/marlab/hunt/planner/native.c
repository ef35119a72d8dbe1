/* One imagined step of all roots in C: the others act by their models, the game goes on, the planner's networks judge.
 *
 * The same as `Planner._expansion` with the game itself and learned models of others, for one CPU core: tensors of a
 * handful of rows cost more to call than to compute. Rows are never written down: a row of 0 and 1 times a matrix is
 * the sum of some of the matrix's rows. All memory belongs to tensors that Python keeps.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { STAY = 4, HUNT = 5, ABSENT = 7, FAR = 15, UNREACHABLE = 2047 };
enum { MOST_PLAYERS = 16, MOST_PREY = 64, MOST_ACTIONS = 8 };

/* P copies of a network of two layers, and of its heads. */
typedef struct {
    int64_t hidden;
    const float *rows, *rows_bias, *time; /* [P, W, X], [P, X], [P, X] */
    const float *middle, *middle_bias;    /* [P, X, X], [P, X] */
    const float *actor, *actor_bias;      /* [P, X, A], [P, A] */
    const float *critic, *critic_bias;    /* [P, X], [P]; none for models of others */
    const float *place;                   /* [P, S', X]; none for planners */
    const float *goal;                    /* [R, (S',) X] what goals add to the second layer, or none */
    const float *joined;                  /* [R, S', X] the same once another player stands on a stag, or none */
    const int64_t *copy;                  /* [R] which copy a root asks */
    float *blocks;                        /* [R, X] what the obstacles of a root's map add */
} Net;

typedef struct {
    int64_t roots, players, prey, stags, kinds, actions, cells, channels, width; /* width of a row */
    int64_t start, ways, distances; /* where the planes, the ways and the distances begin; ways 0: none are read */
    int64_t final_time, last_after_hunt, dynamic, prosocial;
    double stag_reward, hare_reward, time_reward, reward_scale, gamma, loyalty;
    const int64_t *move;   /* [M, C, 5] */
    const int16_t *path;   /* [M, C, C] */
    const uint8_t *walls;  /* [M, C] */
    const int64_t *root_map; /* [R] */
    const uint8_t *hunting; /* [R, S'] who is after the stag whatever others do, or none */
    float *scratch;        /* [2, X] */
    Net me, others;
} Mind;

/* A situation: map, t, first hunt, cells, who is there, last actions, prey cells, prey that is left. */
typedef struct {
    const int32_t *map, *t, *first, *cell, *alive, *last, *prey, *left;
} Situation;

static Situation read(const Mind *m, const int32_t *s) {
    const int64_t n = m->players;
    return (Situation){s, s + 1, s + 2, s + 3, s + 3 + n, s + 3 + 2 * n, s + 3 + 3 * n, s + 3 + 3 * n + m->prey};
}

static int kind_of(const Mind *m, int64_t prey) { return m->kinds > 1 && prey >= m->stags; }

static void legal_of(const Mind *m, Situation s, int64_t player, uint8_t *legal) {
    memset(legal, 0, m->actions);
    if (!s.alive[player]) return;
    const int64_t *to = m->move + (*s.map * m->cells + s.cell[player]) * 5;
    for (int a = 0; a < STAY; a++) legal[a] = to[a] != s.cell[player];
    legal[STAY] = 1;
    for (int64_t p = 0; p < m->prey; p++)
        if (s.left[p] && s.prey[p] == s.cell[player]) legal[HUNT + kind_of(m, p)] = 1;
}

/* --- shortest ways ------------------------------------------------------------------------------------------------- */

typedef struct {
    int near[MOST_PLAYERS][2]; /* steps to the nearest prey of each kind; UNREACHABLE also for players who left */
    int moves[MOST_PLAYERS][2]; /* one bit per move that comes nearer */
} Ways;

static void find_ways(const Mind *m, Situation s, Ways *w) {
    for (int64_t i = 0; i < m->players; i++) {
        w->near[i][0] = w->near[i][1] = UNREACHABLE, w->moves[i][0] = w->moves[i][1] = 0;
        if (!s.alive[i]) continue;
        const int16_t *to = m->path + (*s.map * m->cells + s.cell[i]) * m->cells;
        for (int64_t p = 0; p < m->prey; p++) {
            if (!s.left[p]) continue;
            const int kind = kind_of(m, p), way = to[s.prey[p]], far = way >> 4;
            if (far >= UNREACHABLE) continue;
            if (far < w->near[i][kind]) w->near[i][kind] = far, w->moves[i][kind] = 0;
            if (far == w->near[i][kind]) w->moves[i][kind] |= way & 15;
        }
    }
}

/* --- networks ------------------------------------------------------------------------------------------------------ */

static inline void add_row(float *x, const float *row, int64_t width) {
    for (int64_t j = 0; j < width; j++) x[j] += row[j];
}

/* The first layer of what `looking` sees, before its ReLU. */
static void see(const Mind *m, const Net *net, int64_t root, Situation s, const Ways *w, const uint8_t *legal,
                int64_t looking, float *x) {
    const int64_t X = net->hidden, copy = net->copy[root], n = m->players;
    const float *rows = net->rows + copy * m->width * X, *first = net->rows_bias + copy * X;
    const float *walls = net->blocks + root * X, *clock = net->time + copy * X;
    const float time = (float)*s.t / (float)m->final_time;
    for (int64_t j = 0; j < X; j++) x[j] = first[j] + walls[j] + time * clock[j];
    for (int64_t a = 0; a < m->actions; a++) if (legal[a]) add_row(x, rows + a * X, X);
    for (int64_t k = 0; k < n; k++) {
        if (!s.alive[k]) continue;
        const int64_t place = (k - looking + n) % n;
        add_row(x, rows + (m->start + s.cell[k] * m->channels + place) * X, X);
    }
    for (int64_t p = 0; p < m->prey; p++)
        if (s.left[p]) add_row(x, rows + (m->start + s.prey[p] * m->channels + n + 1 + kind_of(m, p)) * X, X);
    if (!m->ways) return;
    for (int64_t kind = 0; kind < m->kinds; kind++) {
        for (int a = 0; a < STAY; a++)
            if (w->moves[looking][kind] >> a & 1) add_row(x, rows + (m->ways + STAY * kind + a) * X, X);
        for (int64_t place = 0; place < n; place++) {
            const int far = w->near[(looking + place) % n][kind];
            if (far >= UNREACHABLE) continue;
            const int64_t column = m->distances + (place * m->kinds + kind) * (FAR + 1) + (far > FAR ? FAR : far);
            add_row(x, rows + column * X, X);
        }
    }
}

/* x [X] before the first ReLU becomes y [X] after the second; half of x is 0, which is skipped. */
static void think(const Net *net, int64_t copy, const float *goal, const float *restrict x, float *restrict y) {
    const int64_t X = net->hidden;
    const float *weights = net->middle + copy * X * X, *bias = net->middle_bias + copy * X;
    for (int64_t j = 0; j < X; j++) y[j] = goal ? bias[j] + goal[j] : bias[j];
    for (int64_t i = 0; i < X; i++) {
        if (x[i] <= 0) continue;
        const float *row = weights + i * X, by = x[i];
        for (int64_t j = 0; j < X; j++) y[j] += by * row[j];
    }
    for (int64_t j = 0; j < X; j++) y[j] = y[j] > 0 ? y[j] : 0;
}

static void head(const float *weights, const float *bias, int64_t hidden, int64_t out, const float *x, float *y) {
    for (int64_t a = 0; a < out; a++) y[a] = bias[a];
    for (int64_t i = 0; i < hidden; i++)
        if (x[i] != 0)
            for (int64_t a = 0; a < out; a++) y[a] += x[i] * weights[i * out + a];
}

static void add_walls(const Mind *m, const Net *net) {
    const int64_t X = net->hidden;
    for (int64_t root = 0; root < m->roots; root++) {
        const float *rows = net->rows + net->copy[root] * m->width * X;
        const uint8_t *walls = m->walls + m->root_map[root] * m->cells;
        memset(net->blocks + root * X, 0, X * sizeof(float));
        for (int64_t c = 0; c < m->cells; c++)
            if (walls[c]) add_row(net->blocks + root * X, rows + (m->start + c * m->channels + m->players) * X, X);
    }
}

/* Once before a search. */
void begin(const Mind *m) { add_walls(m, &m->me), add_walls(m, &m->others); }

/* --- the game ------------------------------------------------------------------------------------------------------ */

/* One step of the rules; returns the planner's reward and whether it is still in the game. */
static float step(const Mind *m, Situation s, const int64_t *joint, int32_t *after, int *stays) {
    const int64_t n = m->players, prey = m->prey;
    int32_t *cell = after + 3, *alive = cell + n, *last = alive + n, *at = last + n, *left = at + prey;
    int hunters[MOST_PREY] = {0}, hunts[MOST_PLAYERS], caught = 0, anybody = 0, anything = 0;
    float reward[MOST_PLAYERS] = {0}, sum = 0;
    memcpy(at, s.prey, prey * sizeof(int32_t));
    memcpy(left, s.left, prey * sizeof(int32_t));
    for (int64_t i = 0; i < n; i++) {
        const int64_t action = joint[i];
        cell[i] = s.cell[i], alive[i] = s.alive[i], hunts[i] = -1;
        last[i] = s.alive[i] ? STAY : ABSENT;
        if (!s.alive[i]) continue;
        if (action < STAY) {
            cell[i] = (int32_t)m->move[(*s.map * m->cells + s.cell[i]) * 5 + action];
            if (cell[i] != s.cell[i]) last[i] = (int32_t)action;
        } else if (action > STAY) {
            for (int64_t p = 0; p < prey; p++)
                if (s.left[p] && s.prey[p] == s.cell[i] && action == HUNT + kind_of(m, p))
                    hunts[i] = (int)p, hunters[p]++, last[i] = (int32_t)action;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if (hunts[i] < 0) continue;
        const int kind = kind_of(m, hunts[i]), count = hunters[hunts[i]];
        if (count + kind < 2) continue; /* a stag takes two */
        reward[i] = (float)(kind ? m->hare_reward : m->stag_reward) / (float)count;
        alive[i] = 0, left[hunts[i]] = 0, caught = 1;
    }
    for (int64_t i = 0; i < n; i++) {
        if (alive[i]) reward[i] += (float)m->time_reward;
        sum += reward[i], anybody |= alive[i];
    }
    for (int64_t p = 0; p < prey; p++) anything |= left[p];
    after[0] = *s.map, after[1] = *s.t + 1, after[2] = caught && *s.first < 0 ? *s.t : *s.first;
    const int over = after[1] >= m->final_time || !anybody || !anything ||
                     (m->dynamic && after[2] >= 0 && after[1] >= after[2] + 1 + m->last_after_hunt);
    *stays = !(s.alive[0] && (!alive[0] || over));
    return m->prosocial ? sum / (float)n * (float)s.alive[0] : reward[0];
}

/* The most that the planner can still earn, as `Dynamics.most` says it; no bound where it has none. */
static float most_of(const Mind *m, Situation s) {
    int anybody = 0, stag = 0, hare = 0;
    if (m->prosocial || m->time_reward != 0) return INFINITY;
    for (int64_t k = 1; k < m->players; k++) anybody |= s.alive[k];
    for (int64_t p = 0; p < m->prey; p++) {
        if (!s.left[p]) continue;
        if (kind_of(m, p)) hare = 1; else stag = 1;
    }
    const double pair = m->stag_reward / 2 > m->hare_reward ? m->stag_reward / 2 : m->hare_reward;
    return (float)((anybody && stag ? pair : hare ? m->hare_reward : 0) * m->reward_scale);
}

/* --- one node of every root ---------------------------------------------------------------------------------------- */

static int64_t draw(const Mind *m, const float *logits, const float *log_noise, const uint8_t *legal) {
    int64_t best = 0;
    float most = -INFINITY;
    for (int64_t a = 0; a < m->actions; a++) {
        if (!legal[a]) continue;
        const float score = logits[a] - log_noise[a];
        if (score > most) most = score, best = a;
    }
    return best;
}

/* Whether a player other than k stands on a stag. */
static int is_held(const Mind *m, Situation s, int64_t k) {
    for (int64_t p = 0; p < m->prey; p++) {
        if (!s.left[p] || kind_of(m, p)) continue;
        for (int64_t i = 0; i < m->players; i++)
            if (i != k && s.alive[i] && s.cell[i] == s.prey[p]) return 1;
    }
    return 0;
}

/* Whether a stag is there and a single other player after it. */
static int lets_down(const Mind *m, Situation s, const uint8_t *hunting) {
    int hunters = 0, stag = 0;
    for (int64_t k = 1; k < m->players; k++) hunters += s.alive[k] && hunting[k - 1];
    for (int64_t p = 0; p < m->prey; p++) stag |= s.left[p] && !kind_of(m, p);
    return stag && hunters == 1;
}

/* situations, after [R, E]; actions [R]; log_noise [R, S', A]; the rest is what a Transition holds. */
void expand(const Mind *m, const int32_t *situations, const int64_t *actions, const float *log_noise, int32_t *after,
            float *logits, float *value, uint8_t *legal, float *reward, float *discount, int64_t *drawn) {
    const int64_t n = m->players, A = m->actions, E = 3 + 3 * n + 2 * m->prey;
    for (int64_t root = 0; root < m->roots; root++) {
        const Situation s = read(m, situations + root * E);
        const Net *net = &m->others;
        float *x = m->scratch, *y = x + (m->me.hidden > net->hidden ? m->me.hidden : net->hidden), out[MOST_ACTIONS];
        uint8_t may[MOST_ACTIONS];
        int64_t joint[MOST_PLAYERS] = {actions[root]}, name = 0, power = 1, copy = net->copy[root];
        Ways w;
        if (m->ways) find_ways(m, s, &w);
        for (int64_t k = 1; k < n; k++) {
            if (s.alive[k] && s.alive[0]) { /* nothing follows for a planner who left */
                const int64_t X = net->hidden;
                legal_of(m, s, k, may);
                see(m, net, root, s, &w, may, k, x);
                add_row(x, net->place + (copy * (n - 1) + k - 1) * X, X);
                const float *goal = net->joined && is_held(m, s, k) ? net->joined : net->goal;
                think(net, copy, goal + (root * (n - 1) + k - 1) * X, x, y);
                head(net->actor + copy * X * A, net->actor_bias + copy * A, X, A, y, out);
                joint[k] = draw(m, out, log_noise + (root * (n - 1) + k - 1) * A, may);
            }
            name += joint[k] * power, power *= A;
        }
        int stays;
        int32_t *next = after + root * E;
        reward[root] = step(m, s, joint, next, &stays) * (float)m->reward_scale;
        if (m->hunting && actions[root] == HUNT + 1 && !stays && lets_down(m, s, m->hunting + root * (n - 1)))
            reward[root] -= (float)(m->loyalty * m->reward_scale);
        discount[root] = (float)m->gamma * (float)stays;
        drawn[root] = name;
        const Situation now = read(m, next);
        net = &m->me, copy = net->copy[root];
        legal_of(m, now, 0, legal + root * A);
        memset(logits + root * A, 0, A * sizeof(float));
        value[root] = 0;
        if (!stays || !now.alive[0]) continue; /* nobody asks for the value of an end */
        if (m->ways) find_ways(m, now, &w);
        see(m, net, root, now, &w, legal + root * A, 0, x);
        think(net, copy, net->goal ? net->goal + root * net->hidden : 0, x, y);
        head(net->actor + copy * net->hidden * A, net->actor_bias + copy * A, net->hidden, A, y, logits + root * A);
        head(net->critic + copy * net->hidden, net->critic_bias + copy, net->hidden, 1, y, value + root);
        const float most = most_of(m, now);
        if (value[root] > most) value[root] = most;
    }
}
