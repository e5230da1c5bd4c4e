"""Networks that are public: trained on public data, named by the hash of their weights."""

from aquatint.networks.files import load as load
from aquatint.networks.files import save as save
from aquatint.networks.projection import Projection as Projection
from aquatint.networks.projection import public_projection as public_projection
from aquatint.networks.public import PublicNetwork as PublicNetwork
from aquatint.networks.reduced import public_reduction as public_reduction
from aquatint.networks.residual import resnet18 as resnet18
from aquatint.networks.smooth import smooth_projection as smooth_projection
from aquatint.networks.vgg import vgg16 as vgg16
from aquatint.networks.vgg import vgg19 as vgg19
