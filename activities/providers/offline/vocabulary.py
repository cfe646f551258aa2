"""The words of attributes, comparisons and events, as data that `words.py` reads."""

# One attribute a stanza: name, dimensions and unit; then fields, their words divided by commas.
ATTRIBUTES = """
length | length, time | km
nouns: length; after: long, in length, in total length
before: stretches, stretch, extends, flows, runs, measures, lasts, lasted

height | length | m
nouns: height; before: rises, rising, stands, soars, tops out; after: high, tall, in height; accepts: elevation

elevation | length | m
nouns: elevation, altitude; accepts: height
after: above sea level, above mean sea level, above the sea, a.s.l, amsl

depth | length | m
nouns: depth; after: deep, in depth; avoid: average, mean, averages

width | length | m
nouns: width, breadth; after: wide, broad, in width

diameter | length | km
nouns: diameter; after: across, in diameter

distance | length | km
nouns: distance; before: lies, orbits; after: away, from

drainage basin | area | km²
nouns: drainage basin, basin, catchment, catchment area, drainage area, watershed; before: drains

area | area | km²
nouns: area, surface area, surface, land area, total area; before: covers, covering, occupies, spans
after: in area, in size; avoid: METRO; accepts: drainage basin

volume | volume | km³
nouns: volume; before: holds, contains; after: of water

discharge | flow | m³/s
nouns: discharge, flow rate, flow; before: discharges, carries

mass | mass, tons | kg
nouns: mass, weight, body mass, body weight; before: weigh, weighs, weighed, weighing; after: heavy, in weight, in mass

speed | speed | km/h
nouns: speed, top speed, velocity, maximum speed; after: fast; avoid: average, mean, averages, wind, winds
before: reach, reaches, run at, runs at, sprint, sprints, fly at

temperature | temperature | °C
nouns: temperature; after: hot, cold, warm; no scale

melting point | temperature | °C
nouns: melting point, melting temperature; before: melts, melt, melted; no scale

boiling point | temperature | °C
nouns: boiling point, boiling temperature; before: boils, boil; no scale

density | density | g/cm³
nouns: density; after: dense

population density | people by area, count |
nouns: population density

population | count |
nouns: population, number of inhabitants, number of people, number of residents
before: home to, populated by, inhabited by; after: people, inhabitants, residents, citizens
avoid: METRO, a day, per day, a year, killed, died, worked, visitors, passengers

number of native speakers | count |
nouns: number of native speakers; after: native speakers

number of speakers | count |
nouns: number of speakers, total speakers; after: speakers, people speak; avoid: native, second, mother

number of floors | count |
nouns: number of floors; after: floors, storeys, stories

life span | time | years
nouns: life span, lifespan, life expectancy; before: live, lives, living

orbital period | time | days
nouns: orbital period, orbit; before: orbits
after: to orbit, to circle, to go around, to go round, to complete an orbit

length of a day | time | hours
nouns: length of a day, length of day, day length, a day, day; before: day lasts, rotates, rotation

price | US dollars, euros, British pounds |
nouns: price, cost, costs, budget; before: cost, costs, sells

age | time | years
nouns: age; after: old, of age; accepts: origin

origin | date |
before: completed, opened, inaugurated, founded, built, established, born; dated; no scale

size | |
nouns: size; before: measures; accepts: area, diameter, population, drainage basin, volume, mass, height
"""
METRO = "metropolitan, metro, urban, agglomeration, greater, conurbation, suburbs"

# More, most of an attribute, then less, least of it.
COMPARED = """
length: longer longest, shorter shortest
height: taller tallest higher highest, lower lowest
depth: deeper deepest, shallower shallowest
width: wider widest broader broadest, narrower narrowest
size: bigger biggest larger largest greater greatest, smaller smallest tinier tiniest
mass: heavier heaviest, lighter lightest
speed: faster fastest quicker quickest, slower slowest
temperature: hotter hottest warmer warmest, colder coldest cooler coolest
density: denser densest, sparser sparsest
population: more_populous most_populous, less_populous least_populous
price: more_expensive most_expensive, cheaper cheapest
age: older oldest, younger youngest newer newest
distance: farther farthest further furthest, closer closest nearer nearest
"""
POSITIVE = """
length: long; height: tall high; depth: deep; width: wide broad; size: big large small; mass: heavy; speed: fast
temperature: hot cold warm; density: dense; age: old; population: populous; price: expensive
"""
# What happened in a year: the words that may tell of it, for each word asked for; and the noun for it.
EVENTS = """
completed: completed, finished, built; completion
finished: finished, completed
built: built, constructed, completed, erected; construction
constructed: constructed, built, completed
opened: opened, inaugurated; opening
founded: founded, established; founding, foundation
established: established, founded; establishment
discovered: discovered; discovery
first climbed: first climbed, first ascended, first ascent; first ascent
climbed: first climbed, climbed
born: born; birth
invented: invented; invention
published: published; publication
released: released; release
launched: launched; launch
"""
