/* One arena of the sea, fish by fish: the rules of fish/sea (dynamics, perception, rewards) for a batch of one, where
   tensors would spend their time on calls. tests/fish/envs/test_native.py holds every step against the tensors. */

#include <math.h>
#include <stdint.h>

enum { FORWARD, LEFT, RIGHT, BRAKE };
enum { OWN = 11, SOCIAL = 7, MOST_NEAREST = 64 };

typedef struct {
    int64_t fish, predators, social, nearest, t, alive_count, first_death;
    float neighbour_radius, vision, pull, unseen, density_coef, density_target, divergence_coef;
    float *x, *y, *vx, *vy; /* [fish] */
    float *predator;        /* [predators, 4]: x, y, vx, vy */
    uint8_t *alive, *died;  /* [fish]; died: in this step */
    int32_t *death_step;    /* [fish] */
    const int64_t *actions; /* [fish] */
    float *observation;     /* [fish, OWN (+ SOCIAL)] */
    float *reward;          /* [fish] */
    float *scratch;         /* [4, fish] */
} Sea;

static void bounce(float *x, float *y, float *vx, float *vy, float restitution) {
    float radius_sq = *x * *x + *y * *y;
    if (radius_sq <= ARENA_RADIUS * ARENA_RADIUS) return;
    float removed = (1 + restitution) * (*vx * *x + *vy * *y) / radius_sq;
    float shrink = ARENA_RADIUS / sqrtf(radius_sq);
    *vx -= removed * *x, *vy -= removed * *y;
    *x *= shrink, *y *= shrink;
}

/* Every living fish obeys its action and moves; the eaten lie still. */
void move(Sea *sea) {
    sea->t += 1;
    for (int64_t i = 0; i < sea->fish; i++) {
        float vx = sea->vx[i], vy = sea->vy[i];
        if (!sea->alive[i]) {
            sea->vx[i] = sea->vy[i] = 0;
            continue;
        }
        float speed = sqrtf(vx * vx + vy * vy);
        int moving = speed > REST_SPEED;
        float dx = moving ? vx / speed : 1, dy = moving ? vy / speed : 0;
        int64_t action = sea->actions[i];
        if (action == FORWARD) {
            vx += FISH_GAIN * dx, vy += FISH_GAIN * dy;
        } else if (action == LEFT || action == RIGHT) {
            float along = speed * FISH_COS, across = (action == LEFT ? speed : -speed) * FISH_SIN;
            vx = along * dx - across * dy, vy = along * dy + across * dx;
        } else if (action == BRAKE) {
            vx *= FISH_BRAKE, vy *= FISH_BRAKE;
        }
        speed = sqrtf(vx * vx + vy * vy);
        if (speed > FISH_MAX_SPEED) vx *= FISH_MAX_SPEED / speed, vy *= FISH_MAX_SPEED / speed;
        float x = sea->x[i] + DT * vx, y = sea->y[i] + DT * vy;
        bounce(&x, &y, &vx, &vy, FISH_RESTITUTION);
        sea->x[i] = x, sea->y[i] = y, sea->vx[i] = vx, sea->vy[i] = vy;
    }
}

/* The ballistic predator: a pull to the north. */
void fall(Sea *sea) {
    float *p = sea->predator;
    p[3] += sea->pull * DT;
    p[0] += DT * p[2], p[1] += DT * p[3];
    bounce(p, p + 1, p + 2, p + 3, PREDATOR_RESTITUTION);
}

typedef struct {
    float number, mean_dx, mean_dy, nearest, speed_mean, speed_std, divergence;
} Social;

static Social social_of(const Sea *sea, int64_t i) {
    Social out = {0, 0, 0, 0, 0, 0, 0};
    float *d2 = sea->scratch, *dx = d2 + sea->fish, *dy = dx + sea->fish, *speed = dy + sea->fish;
    float least[MOST_NEAREST]; /* the smallest distances, each once */
    float radius_sq = sea->neighbour_radius * sea->neighbour_radius, away = 0, sum = 0;
    int64_t near = 0, kept = 0;
    for (int64_t j = 0; j < sea->fish; j++) {
        if (j == i || !sea->alive[j]) continue;
        float ax = sea->x[j] - sea->x[i], ay = sea->y[j] - sea->y[i], apart = ax * ax + ay * ay + 1e-12f;
        if (apart > radius_sq) continue;
        d2[near] = apart, dx[near] = ax, dy[near] = ay;
        speed[near] = sqrtf(sea->vx[j] * sea->vx[j] + sea->vy[j] * sea->vy[j]);
        sum += speed[near];
        away += (sea->vx[j] * ax + sea->vy[j] * ay) / sqrtf(apart);
        near++;
        int64_t at = kept;
        while (at > 0 && least[at - 1] > apart) at--;
        if (at > 0 && least[at - 1] == apart) continue;
        if (at >= sea->nearest) continue;
        if (kept < sea->nearest) kept++;
        for (int64_t k = kept - 1; k > at; k--) least[k] = least[k - 1];
        least[at] = apart;
    }
    if (!near) return out;
    float reach = kept < sea->nearest ? radius_sq : least[kept - 1], closest = 0, spread = 0, mean = sum / near;
    for (int64_t k = 0; k < near; k++) {
        spread += (speed[k] - mean) * (speed[k] - mean);
        if (d2[k] <= reach) closest++, out.mean_dx += dx[k], out.mean_dy += dy[k];
    }
    out.number = near, out.mean_dx /= closest, out.mean_dy /= closest, out.nearest = sqrtf(least[0]);
    out.speed_mean = mean, out.speed_std = sqrtf(spread / near), out.divergence = away / near;
    return out;
}

/* What everybody sees, and with `was_alive` what arriving here was worth. */
static void perceive(Sea *sea, int rewarded) {
    int64_t width = OWN + (sea->social & 1 ? SOCIAL : 0);
    for (int64_t i = 0; i < sea->fish; i++) {
        float *row = sea->observation + i * width;
        for (int64_t k = 0; k < width; k++) row[k] = 0;
        if (!sea->alive[i]) {
            if (rewarded) sea->reward[i] = sea->died[i] ? DEATH : 0;
            continue;
        }
        const float *seen = sea->predator;
        float px = 0, py = 0, nearest_sq = INFINITY;
        for (int64_t p = 0; p < sea->predators; p++) {
            float ax = sea->predator[4 * p] - sea->x[i], ay = sea->predator[4 * p + 1] - sea->y[i];
            if (ax * ax + ay * ay < nearest_sq) nearest_sq = ax * ax + ay * ay, px = ax, py = ay, seen = sea->predator + 4 * p;
        }
        float distance = sqrtf(nearest_sq), wall = ARENA_RADIUS - sqrtf(sea->x[i] * sea->x[i] + sea->y[i] * sea->y[i]);
        int visible = distance < sea->vision;
        row[0] = sea->x[i] / ARENA_RADIUS, row[1] = sea->y[i] / ARENA_RADIUS;
        row[2] = sea->vx[i] / FISH_MAX_SPEED, row[3] = sea->vy[i] / FISH_MAX_SPEED, row[4] = wall / ARENA_RADIUS;
        if (visible) {
            row[5] = 1, row[6] = px / VISION_RADIUS, row[7] = py / VISION_RADIUS;
            row[8] = seen[2] / FISH_MAX_SPEED, row[9] = seen[3] / FISH_MAX_SPEED, row[10] = distance / VISION_RADIUS;
        }
        Social social = {0, 0, 0, 0, 0, 0, 0};
        if (sea->social) social = social_of(sea, i);
        float crowd = social.number / sea->nearest;
        if (sea->social & 1) {
            row[11] = crowd < 1 ? crowd : 1;
            row[12] = social.mean_dx / sea->neighbour_radius, row[13] = social.mean_dy / sea->neighbour_radius;
            row[14] = social.nearest / sea->neighbour_radius, row[15] = social.speed_mean / FISH_MAX_SPEED;
            row[16] = social.speed_std / FISH_MAX_SPEED, row[17] = social.divergence / FISH_MAX_SPEED;
        }
        if (rewarded) {
            float worth = LIFE + (visible ? distance * VISION_TOP / sea->vision : sea->unseen);
            if (wall < WALL_MARGIN) worth -= WALL_SLOPE * (WALL_MARGIN - wall);
            if (crowd > sea->density_target) worth -= sea->density_coef * (crowd - sea->density_target);
            worth += sea->divergence_coef / FISH_MAX_SPEED * social.divergence;
            sea->reward[i] = SCALE * worth;
        }
    }
}

void look(Sea *sea) { perceive(sea, 0); }

/* Who is eaten, what that was worth, and what is seen then. */
void judge(Sea *sea) {
    sea->alive_count = 0;
    for (int64_t i = 0; i < sea->fish; i++) {
        sea->died[i] = 0;
        if (!sea->alive[i]) continue;
        for (int64_t p = 0; p < sea->predators && sea->alive[i]; p++) {
            float dx = sea->x[i] - sea->predator[4 * p], dy = sea->y[i] - sea->predator[4 * p + 1];
            if (sqrtf(dx * dx + dy * dy) < KILL_DISTANCE) {
                sea->alive[i] = 0, sea->died[i] = 1, sea->death_step[i] = sea->t;
                if (sea->first_death < 0) sea->first_death = sea->t;
            }
        }
        sea->alive_count += sea->alive[i];
    }
    perceive(sea, 1);
}
