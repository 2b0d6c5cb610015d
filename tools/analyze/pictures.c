/* SPDX-License-Identifier: BSD-2-Clause */
/* The pictures, by gnuplot. Each one's script, with its data, stays beside it. */
#include "analyze.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Okabe and Ito's colours, told apart by most eyes. */
static const char *const colours[] = {"#999999", "#E69F00", "#56B4E9", "#009E73",
				      "#CC79A7", "#0072B2", "#D55E00", "#7A5195",
				      "#B8A000", "#4D4D4D", "#8C564B", "#17A589"};
#define COLOURS (sizeof(colours) / sizeof(colours[0]))

static int run_gnuplot(const struct analysis *analysis, const char *script)
{
	char path[4096];
	char *arguments[] = {"gnuplot", path, NULL};
	int status = 0, result;
	pid_t child;

	snprintf(path, sizeof(path), "%s/%s", analysis->out, script);
	result = posix_spawnp(&child, "gnuplot", NULL, NULL, arguments, environ);
	if (!result && (waitpid(child, &status, 0) < 0 || status))
		result = EIO;
	if (result)
		fprintf(stderr, "analyze: gnuplot %s: %s; the tables are complete\n", path,
			result == ENOENT ? "gnuplot is not installed (package gnuplot-nox)"
					 : strerror(result));
	return -result;
}

static FILE *begin(const struct analysis *analysis, const char *script, const char *picture,
		   int width, int height)
{
	FILE *file = output_open(analysis, script);

	if (!file)
		return NULL;
	fprintf(file,
		"set terminal pngcairo size %d,%d font 'DejaVu Sans,10' noenhanced background '#ffffff'\n"
		"set output '%s/%s'\n"
		"set border 3 lc rgb '#808080'\nset tics nomirror textcolor rgb '#202020'\n"
		"set grid xtics ytics lc rgb '#e0e0e0' lw 1 lt 1\n",
		width, height, analysis->out, picture);
	return file;
}

static int end(const struct analysis *analysis, const char *script, FILE *file)
{
	int result = output_close(analysis, script, file);

	return result ? result : run_gnuplot(analysis, script);
}

static const char *colour(uint32_t policy)
{
	return colours[policy % COLOURS];
}

/* --- summary.png: bars, one panel a metric --------------------------------------------------------------------- */

static void draw_panel(FILE *file, const struct analysis *analysis, enum metric metric,
		       const char *title, double left, double right, bool names)
{
	double low = INFINITY, high = 0;
	int decimals = metric == METRIC_P95 ? 1 : metrics[metric].decimals;

	for (uint32_t i = 0; i < analysis->policy_count; i++) {
		const struct mean *mean = &analysis->policies[i].means[metric];
		double width = isnan(mean->half_width) ? 0 : mean->half_width;

		low = fmin(low, mean->mean - width);
		high = fmax(high, mean->mean + width);
	}
	/* a ratio of 1 is perfect: bars start there */
	low = metric == METRIC_IMBALANCE ? 1 : 0;
	if (!(high > low))
		high = low + 1;
	fprintf(file, "$panel%d << EOD\n", metric);
	for (uint32_t i = 0; i < analysis->policy_count; i++) {
		const struct mean *mean = &analysis->policies[i].means[metric];

		if (!isnan(mean->mean))
			fprintf(file, "%u %g %g %.*f %ld\n", i, mean->mean,
				isnan(mean->half_width) ? 0 : mean->half_width, decimals,
				mean->mean, strtol(colour(i) + 1, NULL, 16));
	}
	fputs("EOD\n", file);
	fprintf(file,
		"set lmargin at screen %g\nset rmargin at screen %g\nset title \"%s\" font ',11'\n"
		"set xrange [%g:%g]\nset yrange [%g:-0.6]\n",
		left, right, title, low, low + (high - low) * 1.22, analysis->policy_count - 0.4);
	if (names) {
		fputs("set ytics (", file);
		for (uint32_t i = 0; i < analysis->policy_count; i++)
			fprintf(file, "%s\"%s\" %u", i ? ", " : "", analysis->policies[i].label, i);
		fputs(") scale 0\n", file);
	} else {
		fputs("unset ytics\n", file);
	}
	fprintf(file,
		"plot $panel%d using (%g):1:(%g):2:($1-0.36):($1+0.36):(column(5)) with boxxyerror fs solid 0.85 noborder "
		"lc rgb variable notitle, "
		"'' using 2:($3 > 0 ? $1 : NaN):3 with xerrorbars pt -1 lw 1.4 lc rgb '#202020' notitle, "
		"'' using ($2+$3):1:4 with labels left offset 0.7,0 font ',9' notitle\n",
		metric, low, low);
}

static int draw_summary(const struct analysis *analysis)
{
	static const struct {
		enum metric metric;
		const char *title;
	} panels[] = {
		{METRIC_HIT_RATE, "cache hit rate, follow-up turns (%)"},
		{METRIC_P95, "p95 latency (s)"},
		{METRIC_IMBALANCE, "work imbalance (busiest / mean)"},
	};
	int height = 110 + 30 * (int)analysis->policy_count;
	size_t longest = 0;
	double names;
	FILE *file = begin(analysis, "summary.gp", "summary.png", 1200, height);

	if (!file)
		return -EIO;
	for (uint32_t i = 0; i < analysis->policy_count; i++)
		if (strlen(analysis->policies[i].label) > longest)
			longest = strlen(analysis->policies[i].label);
	names = fmin(0.35, (26 + 7.9 * (double)longest) / 1200);
	fprintf(file,
		"set multiplot\nunset grid\nset grid xtics lc rgb '#e0e0e0' lw 1 lt 1\n"
		"set tmargin at screen %g\nset bmargin at screen %g\nset xtics autofreq\n",
		1 - 44.0 / height, 40.0 / height);
	for (int i = 0; i < 3; i++) {
		double width = (0.985 - names) / 3;

		/* bars take their colour from a number */
		draw_panel(file, analysis, panels[i].metric, panels[i].title, names + i * width,
			   names + (i + 1) * width - 0.025, i == 0);
	}
	fputs("unset multiplot\n", file);
	return end(analysis, "summary.gp", file);
}

/* --- hit_rate_over_time.png ---------------------------------------------------------------------------------------- */

static double longest_run(const struct analysis *analysis)
{
	double longest = 0;

	for (uint32_t i = 0; i < analysis->count; i++)
		longest = fmax(longest, analysis->results[i].run.duration_s);
	return longest;
}

static void write_hit_rates(FILE *file, const struct policy *policy, double bin, uint32_t bins)
{
	double *cached = calloc(bins, 2 * sizeof(*cached)), *prompt;

	if (!cached)
		abort();
	prompt = cached + bins;
	for (uint32_t r = 0; r < policy->count; r++)
		for (uint32_t i = 0; i < policy->results[r]->count; i++) {
			const struct record *record = &policy->results[r]->records[i];
			uint32_t at = (uint32_t)fmin(record->t_start_s / bin, bins - 1);

			if (record->turn < 2 || !record->has_timings)
				continue;
			cached[at] += record->cache_n;
			prompt[at] += record->cache_n + record->prompt_n;
		}
	for (uint32_t at = 0; at < bins; at++)
		if (prompt[at] > 0)
			fprintf(file, "%g %g\n", (at + 0.5) * bin, 100 * cached[at] / prompt[at]);
	free(cached);
}

static void write_keys(FILE *file, const struct analysis *analysis, const char *data,
		       const char *style)
{
	fputs("plot ", file);
	for (uint32_t i = 0; i < analysis->policy_count; i++)
		fprintf(file, "%s$%s%u using 1:2 with %s lw 2 lc rgb '%s' title \"%s\"",
			i ? ", " : "", data, i, style, colour(i), analysis->policies[i].label);
	fputc('\n', file);
}

static int draw_hit_rates(const struct analysis *analysis)
{
	double longest = longest_run(analysis), bin = analysis->bin_s, ready = NAN;
	uint32_t bins;
	FILE *file;

	if (bin <= 0)
		bin = fmax(1, longest / 40);
	bins = (uint32_t)(longest / bin) + 1;
	file = begin(analysis, "hit_rate_over_time.gp", "hit_rate_over_time.png", 1000,
		     420 + 9 * (int)analysis->policy_count);
	if (!file)
		return -EIO;
	for (uint32_t i = 0; i < analysis->policy_count; i++) {
		fprintf(file, "$rate%u << EOD\n", i);
		write_hit_rates(file, &analysis->policies[i], bin, bins);
		fputs("EOD\n", file);
	}
	for (uint32_t i = 0; i < analysis->count; i++)
		if (!isnan(analysis->results[i].run.new_replica_ready_s))
			ready = analysis->results[i].run.new_replica_ready_s;
	if (!isnan(ready))
		fprintf(file,
			"set arrow from %g, graph 0 to %g, graph 1 nohead dt 2 lc rgb '#606060'\n"
			"set label 'new replica' at %g, graph 0.03 offset 0.6,0 font ',9' textcolor rgb '#606060'\n",
			ready, ready, ready);
	fprintf(file,
		"set title \"cache hit rate of follow-up turns over time, all runs of a policy pooled (bins of %.3g s)\" font ',11'\n"
		"set xlabel 'start of the request (s)'\nset ylabel 'hit rate (%%)'\nset yrange [*<90:100]\n"
		"set xrange [0:%g]\nset key outside right top Left reverse samplen 2 spacing 1.2\n",
		bin, longest);
	write_keys(file, analysis, "rate", "lines");
	return end(analysis, "hit_rate_over_time.gp", file);
}

/* --- latency_cdf.png ------------------------------------------------------------------------------------------------- */

static double write_cdf(FILE *file, const struct policy *policy)
{
	double *latencies, least;
	size_t count = 0, all = 1;

	for (uint32_t r = 0; r < policy->count; r++)
		all += policy->results[r]->count;
	latencies = malloc(all * sizeof(*latencies));
	if (!latencies)
		abort();
	for (uint32_t r = 0; r < policy->count; r++)
		for (uint32_t i = 0; i < policy->results[r]->count; i++)
			if (!policy->results[r]->records[i].error[0])
				latencies[count++] =
					policy->results[r]->records[i].latency_ms / 1e3;
	sort_numbers(latencies, count);
	least = percentile(latencies, count, 0.005);
	for (int i = 0; i <= 400 && count; i++)
		fprintf(file, "%g %g\n", percentile(latencies, count, i / 400.0), i / 4.0);
	free(latencies);
	return least;
}

static int draw_cdf(const struct analysis *analysis)
{
	FILE *file = begin(analysis, "latency_cdf.gp", "latency_cdf.png", 1000,
			   420 + 9 * (int)analysis->policy_count);
	double least = INFINITY;

	if (!file)
		return -EIO;
	for (uint32_t i = 0; i < analysis->policy_count; i++) {
		fprintf(file, "$cdf%u << EOD\n", i);
		least = fmin(least, write_cdf(file, &analysis->policies[i]));
		fputs("EOD\n", file);
	}
	fprintf(file,
		"set title \"latency of answered requests, all runs of a policy pooled\" font ',11'\n"
		"set xlabel 'latency (s), logarithmic'\nset ylabel 'share of requests (%%)'\nset logscale x\n"
		"set yrange [0:100]\nset xrange [%g:*]\nset key outside right top Left reverse samplen 2 spacing 1.2\n",
		isfinite(least) && least > 0 ? least : 0.001);
	write_keys(file, analysis, "cdf", "lines");
	return end(analysis, "latency_cdf.gp", file);
}

/* --- work_per_replica.png ---------------------------------------------------------------------------------------------- */

struct names {
	char names[REPLICAS_SHOWN_MAX][RECORD_NAME_SIZE];
	uint32_t count;
};

static int by_name(const void *a, const void *b)
{
	return strverscmp(a, b);
}

static void collect_names(const struct analysis *analysis, struct names *names)
{
	for (uint32_t r = 0; r < analysis->count; r++)
		for (uint32_t i = 0; i < analysis->results[r].replica_count; i++) {
			bool known = false;

			for (uint32_t n = 0; n < names->count && !known; n++)
				known = strcmp(names->names[n], analysis->results[r].replicas[i]) ==
					0;
			if (!known && names->count < REPLICAS_SHOWN_MAX)
				snprintf(names->names[names->count++], RECORD_NAME_SIZE, "%s",
					 analysis->results[r].replicas[i]);
		}
	qsort(names->names, names->count, sizeof(names->names[0]), by_name);
}

static double mean_work(const struct policy *policy, const char *replica)
{
	double sum = 0;

	for (uint32_t r = 0; r < policy->count; r++)
		for (uint32_t i = 0; i < policy->results[r]->replica_count; i++)
			if (strcmp(policy->results[r]->replicas[i], replica) == 0)
				sum += policy->results[r]->work[i];
	return sum / policy->count;
}

static int draw_work(const struct analysis *analysis)
{
	struct names names = {0};
	FILE *file;

	collect_names(analysis, &names);
	if (!names.count)
		return 0;
	file = begin(analysis, "work_per_replica.gp", "work_per_replica.png", 1000,
		     130 + 30 * (int)analysis->policy_count);
	if (!file)
		return -EIO;
	fputs("$work << EOD\n", file);
	for (uint32_t i = 0; i < analysis->policy_count; i++) {
		double from = 0;

		for (uint32_t n = 0; n < names.count; n++) {
			double work = mean_work(&analysis->policies[i], names.names[n]) / 1000;

			fprintf(file, "%u %g %g %u\n", i, from, from + work, n);
			from += work;
		}
	}
	fputs("EOD\nset title \"work of each replica: prompt tokens processed and tokens answered, mean of the runs (thousands)\" font ',11'\n"
	      "unset grid\nset grid xtics lc rgb '#e0e0e0' lw 1 lt 1\nset xrange [0:*]\n",
	      file);
	fprintf(file,
		"set yrange [%g:-0.6]\nset key outside right top Left reverse samplen 1 spacing 1.2\nset ytics (",
		analysis->policy_count - 0.4);
	for (uint32_t i = 0; i < analysis->policy_count; i++)
		fprintf(file, "%s\"%s\" %u", i ? ", " : "", analysis->policies[i].label, i);
	fputs(") scale 0\nplot ", file);
	for (uint32_t n = 0; n < names.count; n++)
		fprintf(file,
			"%s$work using 2:($4 == %u ? $1 : NaN):2:3:($1-0.36):($1+0.36) with boxxyerror fs solid 0.85 "
			"border lc rgb '#ffffff' fc rgb '%s' title '%s'",
			n ? ", " : "", n, colour(n + 1), names.count <= 16 ? names.names[n] : "");
	fputc('\n', file);
	return end(analysis, "work_per_replica.gp", file);
}

int pictures_draw(const struct analysis *analysis)
{
	int (*const draw[])(const struct analysis *) = {draw_summary, draw_hit_rates, draw_cdf,
							draw_work};
	int result = 0;

	for (size_t i = 0; i < sizeof(draw) / sizeof(draw[0]) && !result; i++)
		result = draw[i](analysis);
	return result;
}
