"""Bounded feature maps: public maths, used by the curator and by the analyst alike."""

from aquatint.features.algebra import by_label as by_label
from aquatint.features.algebra import concat as concat
from aquatint.features.algebra import heterogeneous as heterogeneous
from aquatint.features.algebra import leaves as leaves
from aquatint.features.algebra import product as product
from aquatint.features.algebra import scale as scale
from aquatint.features.base import Bound as Bound
from aquatint.features.base import FeatureMap as FeatureMap
from aquatint.features.base import Rows as Rows
from aquatint.features.cosines import cosines as cosines
from aquatint.features.fourier import fourier as fourier
from aquatint.features.hermite import hermite as hermite
from aquatint.features.hermite import hermite_combined as hermite_combined
from aquatint.features.hermite import hermite_product as hermite_product
from aquatint.features.locations import locations as locations
from aquatint.features.marginals import Count as Count
from aquatint.features.marginals import marginals as marginals
from aquatint.features.marginals import onehot as onehot
from aquatint.features.marginals import pairs as pairs
from aquatint.features.marginals import triples as triples
from aquatint.features.moments import second_moment as second_moment
from aquatint.features.race import race as race
from aquatint.features.smooth import smooth as smooth
from aquatint.features.spec import from_spec as from_spec
